"""The quantisation and Huffman tables of a JPEG that its scans use (ITU-T T.81, B.2.3, B.2.4.1, B.2.4.2)."""

from __future__ import annotations

from collections.abc import Mapping

from shardforge.codecs.jpeg_segments import DAC, DHT, PROGRESSIVE, SOS, Layout, Segment

_DQT = 0xDB
_ARITHMETIC = frozenset(range(0xC9, 0xD0)) - {DAC}
_Table = tuple[int, int]
"""Where a table begins and ends in the file."""


def used_tables(data: bytes, layout: Layout) -> Mapping[int, bytes]:
    """Start of each table segment → its content without tables that no scan uses; empty if none is left.

    Decoders read a table and forget it when no scan asks for it, or when another takes its place before one does.

    Args:
        layout: of the whole of a file that decodes.
    """
    kind = 0 if layout.frame is None else layout.frame.marker
    quantisers = _quantisers(data, layout.frame)
    current: dict[tuple[int, int], _Table] = {}
    tables: dict[int, list[_Table]] = {}
    used: set[_Table] = set()
    for segment in layout.segments:
        if segment.marker in (_DQT, DHT):
            named = list(_tables(data, segment))
            tables[segment.start] = [table for _, table in named]
            current.update({(segment.marker, name): table for name, table in named})
        elif segment.marker == SOS:
            wanted = {(DHT, name) for name in _huffman(data, segment, kind)}
            body = data[segment.payload : segment.end]
            names = body[1 : 1 + 2 * body[0] : 2] if body else b""
            wanted |= {(_DQT, quantisers[name]) for name in names if name in quantisers}
            used |= {current[key] for key in wanted if key in current}
    kept = {start: b"".join(data[a:b] for a, b in found if (a, b) in used) for start, found in tables.items()}
    if kind not in _ARITHMETIC:
        kept.update({segment.start: b"" for segment in layout.segments if segment.marker == DAC})
    return kept


def _tables(data: bytes, segment: Segment) -> list[tuple[int, _Table]]:
    """The tables of a segment with their destinations (DHT: and their class, in the high four bits)."""
    found, at = [], segment.payload
    while at < segment.end:
        if segment.marker == DHT:
            size, name = 17 + sum(data[at + 1 : at + 17]), data[at]
        else:
            size, name = 1 + (128 if data[at] >> 4 else 64), data[at] & 15
        found.append((name, (at, min(at + size, segment.end))))
        at += size
    return found


def _quantisers(data: bytes, frame: Segment | None) -> dict[int, int]:
    if frame is None:
        return {}
    body = data[frame.payload : frame.end]
    return {body[6 + 3 * i]: body[8 + 3 * i] for i in range(body[5])}


def _huffman(data: bytes, scan: Segment, kind: int) -> set[int]:
    """The Huffman tables of a scan, as their segments name them."""
    if kind in _ARITHMETIC:
        return set()
    body = data[scan.payload : scan.end]
    count = body[0] if body else 0
    if len(body) < 4 + 2 * count:
        return set()
    first, high = body[1 + 2 * count], body[3 + 2 * count] >> 4
    selectors = [body[2 + 2 * i] for i in range(count)]
    coarse = {selector >> 4 for selector in selectors}
    fine = {0x10 | selector & 15 for selector in selectors}
    if kind not in PROGRESSIVE:
        return coarse | fine
    # Refining a DC coefficient takes plain bits.
    return fine if first else set() if high else coarse
