"""The pictures of a HEIF file (ISO/IEC 23008-12): which of its items a viewer shows as pictures of their own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from shardforge.codecs.isobmff import Box, boxes, read_heif_header
from shardforge.codecs.samples import Header

_CODED = frozenset((b"hvc1", b"hev1", b"lhv1", b"avc1", b"vvc1", b"av01", b"j2k1", b"jpeg", b"unci"))
_DERIVED = frozenset((b"grid", b"iden", b"iovl"))
"""Made of other items, which are then no pictures of their own."""


def read_header(data: bytes) -> Header:
    """The header of the primary picture; ``frames`` counts all pictures, or the samples of a sequence.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    header = read_heif_header(data)
    return replace(header, frames=max(header.frames, count_pictures(data)))


def count_pictures(data: bytes) -> int:
    """Master images that are not hidden (6.4.2): neither thumbnails, nor auxiliary, nor parts of another.

    At least one. What makes no sense ends the list that it stands in: the primary picture may be fine all the same.
    """
    meta = next((box for box in boxes(data, 0, len(data)) if box.kind == b"meta"), None)
    if meta is None:
        return 1
    inner = {box.kind: box for box in reversed(list(boxes(data, meta.payload + 4, meta.end)))}
    kinds = dict(_shown(data, inner[b"iinf"])) if b"iinf" in inner else {}
    pictures = {item for item, kind in kinds.items() if kind in _CODED or kind in _DERIVED}
    for kind, item, others in _references(data, inner[b"iref"]) if b"iref" in inner else ():
        if kind in (b"thmb", b"auxl"):
            pictures.discard(item)
        elif kind == b"dimg" and kinds.get(item) in _DERIVED:
            pictures.difference_update(others)
    return max(1, len(pictures))


def _shown(data: bytes, listed: Box) -> Iterator[tuple[int, bytes]]:
    """Number and type of the items that are not hidden (iinf and infe, ISO/IEC 14496-12, 8.11.6)."""
    wide_count = data[listed.payload : listed.end][:1] != b"\0"
    for box in boxes(data, listed.payload + (8 if wide_count else 6), listed.end):
        body = data[box.payload : box.end]
        try:
            version, hidden = struct.unpack_from(">B2xB", body)
            # Older entries have no type, and HEIF does not use them.
            if version < 2 or hidden & 1:
                continue
            item, kind = struct.unpack_from(">H2x4s" if version == 2 else ">I2x4s", body, 4)
        except struct.error:
            return
        yield item, kind


def _references(data: bytes, listed: Box) -> Iterator[tuple[bytes, int, tuple[int, ...]]]:
    """Type, from which item, to which (iref, ISO/IEC 14496-12, 8.11.12)."""
    letter = "H" if data[listed.payload : listed.end][:1] == b"\0" else "I"
    for box in boxes(data, listed.payload + 4, listed.end):
        body = data[box.payload : box.end]
        try:
            item, count = struct.unpack_from(f">{letter}H", body)
            others = struct.unpack_from(f">{count}{letter}", body, struct.calcsize(f">{letter}H"))
        except struct.error:
            return
        yield box.kind, item, others
