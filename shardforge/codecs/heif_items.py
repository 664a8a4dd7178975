"""The pictures of a HEIF file (ISO/IEC 23008-12): which of its items a viewer shows as pictures of their own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from shardforge.codecs.isobmff import Box, boxes, read_heif_header
from shardforge.codecs.samples import Header
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_CODED = frozenset((b"hvc1", b"hev1", b"lhv1", b"avc1", b"vvc1", b"av01", b"j2k1", b"jpeg", b"unci"))
_DERIVED = frozenset((b"grid", b"iden", b"iovl"))
"""Made of other items, which are then no pictures of their own."""


def read_header(data: bytes) -> Header:
    """The header of the primary picture; ``frames`` counts all pictures, or the samples of a sequence.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    header = read_heif_header(data)
    try:
        return replace(header, frames=max(header.frames, count_pictures(data)))
    except (struct.error, IndexError):
        raise SampleError(Reason.TRUNCATED, "the file ends inside its list of items") from None


def count_pictures(data: bytes) -> int:
    """Master images that are not hidden (6.4.2): neither thumbnails, nor auxiliary, nor parts of another.

    Raises:
        struct.error, IndexError: the list of items ends early.
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
    start = listed.payload + (6 if data[listed.payload] == 0 else 8)
    for box in boxes(data, start, listed.end):
        version, hidden = data[box.payload], data[box.payload + 3] & 1
        # Older entries have no type, and HEIF does not use them.
        if version >= 2 and not hidden:
            item, kind = struct.unpack_from(">H2x4s" if version == 2 else ">I2x4s", data, box.payload + 4)
            yield item, kind


def _references(data: bytes, listed: Box) -> Iterator[tuple[bytes, int, tuple[int, ...]]]:
    """Type, from which item, to which (iref, ISO/IEC 14496-12, 8.11.12)."""
    size, letter = (4, "I") if data[listed.payload] else (2, "H")
    for box in boxes(data, listed.payload + 4, listed.end):
        item, count = struct.unpack_from(f">{letter}H", data, box.payload)
        yield box.kind, item, struct.unpack_from(f">{count}{letter}", data, box.payload + size + 2)
