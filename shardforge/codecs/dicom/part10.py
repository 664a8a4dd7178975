"""The start of a DICOM file: preamble, file meta information, and how the dataset behind them is written (PS3.10, 7).

Read by hand, not by pydicom: the group is small, always comes first, and is what broken exporters get wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardforge.codecs.dicom.syntaxes import EXPLICIT_BE, EXPLICIT_LE, IMPLICIT_LE
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_LONG_VRS = frozenset(b"OB OD OF OL OV OW SQ SV UC UN UR UT UV".split())
_VRS = _LONG_VRS | frozenset(b"AE AS AT CS DA DS DT FD FL IS LO LT PN SH SL SS ST TM UI UL US".split())
# Pixel data of this one are big endian, all else in it is implicit little endian (GE private).
_GE_PRIVATE = "1.2.840.113619.5.2"


@dataclass(frozen=True)
class Start:
    """Where and how the dataset is written.

    Attributes:
        offset: of the dataset's first byte.
        transfer_syntax: as stated, or inferred from the first element (then the plain syntax that fits it).
        media_sop_class: MediaStorageSOPClassUID, or "".
        implicit, little: the encoding of the dataset's elements.
        flags: ``ts_inferred``, ``preamble_not_empty``.
    """

    offset: int
    transfer_syntax: str
    media_sop_class: str
    implicit: bool
    little: bool
    flags: tuple[Flag, ...]


def read_start(head: bytes, size: int) -> Start:
    """Reads preamble and file meta information, or does without them.

    Without preamble the file has to begin with an element of group 0002 or 0008 of a plausible VR or length.

    Args:
        head: the file's first bytes.
        size: of the file.

    Raises:
        SampleError: ``not_dicom``.
    """
    flags: list[Flag] = []
    at = 0
    if head[128:132] == b"DICM":
        at = 132
        if any(head[:128]):
            flags.append(Flag.PREAMBLE_NOT_EMPTY)
    elif not _looks_like_elements(head, size):
        raise SampleError(Reason.NOT_DICOM, "neither a DICM prefix nor an element of group 0002 or 0008 at the start")
    at, values = _meta(head, at)
    syntax = values.get(0x0010, "")
    if syntax:
        implicit = syntax in (IMPLICIT_LE, _GE_PRIVATE)
        return Start(at, syntax, values.get(0x0002, ""), implicit, syntax != EXPLICIT_BE, tuple(flags))
    flags.append(Flag.TS_INFERRED)
    implicit, little = _probe(head[at : at + 6])
    syntax = IMPLICIT_LE if implicit else EXPLICIT_LE if little else EXPLICIT_BE
    return Start(at, syntax, values.get(0x0002, ""), implicit, little, tuple(flags))


def _looks_like_elements(head: bytes, size: int) -> bool:
    group = head[:2]
    if len(head) < 8 or group not in (b"\x02\0", b"\x08\0", b"\0\x08"):
        return False
    if head[4:6] in _VRS:
        return True
    return group != b"\0\x08" and int.from_bytes(head[4:8], "little") <= size - 8


def _meta(head: bytes, at: int) -> tuple[int, dict[int, str]]:
    """Offset behind group 0002, and its text values by element number.

    The group's stated length is not believed: the group ends where another begins.
    """
    values: dict[int, str] = {}
    while head[at : at + 2] == b"\x02\0" and at + 8 <= len(head):
        element, vr = int.from_bytes(head[at + 2 : at + 4], "little"), head[at + 4 : at + 6]
        if vr in _LONG_VRS:
            start, length = at + 12, int.from_bytes(head[at + 8 : at + 12], "little")
        elif vr.isalpha():
            start, length = at + 8, int.from_bytes(head[at + 6 : at + 8], "little")
        else:
            # Some writers use implicit VR here too.
            start, length = at + 8, int.from_bytes(head[at + 4 : at + 8], "little")
        if element in (0x0002, 0x0010):
            values[element] = head[start : start + min(length, 64)].decode("latin-1").strip("\0 ")
        at = start + length
    return at, values


def _probe(first: bytes) -> tuple[bool, bool]:
    """Whether the dataset is implicit, and whether little endian, by its first element.

    Groups are below 0x0400 in little endian, and look like more when big endian is read so.
    """
    if first[4:6] in _VRS:
        return False, int.from_bytes(first[:2], "little") < 0x0400
    return True, True
