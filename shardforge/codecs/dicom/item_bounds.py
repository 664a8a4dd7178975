"""Where the items of a sequence begin and end, found without reading what is in them (PS3.5 7.5)."""

from __future__ import annotations

import struct

from pydicom.valuerep import EXPLICIT_VR_LENGTH_16, EXPLICIT_VR_LENGTH_32

UNDEFINED = 0xFFFFFFFF
"""The length of what ends with a delimiter."""

_ITEM, _ITEM_END, _SEQUENCE_END = 0xE000FFFE, 0xE00DFFFE, 0xE0DDFFFE
_SHORT = frozenset(str(vr).encode() for vr in EXPLICIT_VR_LENGTH_16)
_LONG = frozenset(str(vr).encode() for vr in EXPLICIT_VR_LENGTH_32)
_PAIR = struct.Struct("<LL").unpack_from
_LENGTH = struct.Struct("<L").unpack_from
_HALF = struct.Struct("<H").unpack_from
_MOST_STEPS = 2_000_000
_MOST_DEPTH = 16

Bounds = list[tuple[int, int]]


def item_bounds(data: bytes, at: int, *, implicit: bool) -> tuple[Bounds, int] | None:
    """Goes over the items of a sequence in little endian, up to its delimiter or the end of the data.

    Args:
        data: holds the sequence.
        at: offset of its first item.
        implicit: elements do not state their VR.

    Returns:
        Where the content of each item begins and ends, and the offset behind the sequence; None if anything is
        unusual, damaged or endless.
    """
    found: Bounds = []
    begun, size = 0, len(data)
    # Whether what is open, from the outside to the inside, is a sequence or else an item.
    opened = [True]
    for _ in range(_MOST_STEPS):
        if at == size and len(opened) == 1:
            return found, at
        if at + 8 > size:
            return None
        tag, length = _PAIR(data, at)
        if opened[-1]:
            at += 8
            if tag == _SEQUENCE_END:
                opened.pop()
                if not opened:
                    return found, at
            elif tag != _ITEM:
                return None
            elif length == UNDEFINED:
                begun = at if len(opened) == 1 else begun
                opened.append(False)
            else:
                if len(opened) == 1:
                    found.append((at, at + length))
                at += length
            continue
        if tag == _ITEM_END:
            opened.pop()
            if len(opened) == 1:
                found.append((begun, at))
            at += 8
            continue
        if implicit:
            at += 8
        elif (code := data[at + 4 : at + 6]) in _SHORT:
            (length,) = _HALF(data, at + 6)
            at += 8
        elif code in _LONG and at + 12 <= size:
            (length,) = _LENGTH(data, at + 8)
            at += 12
            if length == UNDEFINED and code != b"SQ":
                return None
        else:
            return None
        if length == UNDEFINED:
            if len(opened) >= _MOST_DEPTH:
                return None
            opened.append(True)
        else:
            at += length
    return None
