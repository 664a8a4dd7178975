"""Whether the restart intervals of a JPEG's scans are all there and in their places (ITU-T T.81, B.2.4.4, E.1.4).

A decoder that misses a restart marker guesses: it skips an interval, or leaves one grey. The markers' numbers, which
go round from 0 to 7, and their count, which follows from the picture's size, say what the data are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from shardforge.codecs.jpeg_segments import SOS, Layout, Segment

_DRI = 0xDD
_RESTART = re.compile(rb"\xff+([\xd0-\xd7])")


class Restarts(Enum):
    """How a file's restart markers stand.

    ``IN_ORDER``: as they should, or there are none. ``MISNUMBERED``: as many as there should be, and each wrong
    number stands alone between right ones. ``DISPLACED``: as many as there should be or more, with other numbers:
    intervals are repeated or stand elsewhere. ``LOST``: fewer than there should be, and out of sequence. ``ENDED``:
    fewer, but in sequence: the data end early.
    """

    IN_ORDER = "in order"
    MISNUMBERED = "misnumbered"
    DISPLACED = "displaced"
    LOST = "lost"
    ENDED = "ended"


@dataclass(frozen=True)
class _Scan:
    expected: int
    places: tuple[int, ...]
    numbers: tuple[int, ...]

    @property
    def standing(self) -> Restarts:
        found = len(self.numbers)
        wrong = [number != i % 8 for i, number in enumerate(self.numbers)]
        astray = any(one and other for one, other in pairwise(wrong))
        if found < self.expected:
            return Restarts.LOST if astray else Restarts.ENDED
        if found > self.expected or astray:
            return Restarts.DISPLACED
        return Restarts.MISNUMBERED if any(wrong) else Restarts.IN_ORDER


def restarts(data: bytes, layout: Layout) -> Restarts:
    """How the restart markers stand in the scan where they stand worst.

    Args:
        layout: of the whole file, with a frame header that is long enough.
    """
    order = list(Restarts)
    return max((scan.standing for scan in _scans(data, layout)), key=order.index, default=Restarts.IN_ORDER)


def renumbered(data: bytes, layout: Layout) -> bytes:
    """The file with its restart markers numbered as they come, so that every interval is decoded where it stands."""
    whole = bytearray(data)
    for scan in _scans(data, layout):
        for i, place in enumerate(scan.places):
            whole[place] = 0xD0 + i % 8
    return bytes(whole)


def _scans(data: bytes, layout: Layout) -> list[_Scan]:
    interval, scans = 0, []
    for segment in layout.segments:
        if segment.marker == _DRI:
            interval = int.from_bytes(data[segment.payload : segment.payload + 2], "big")
        elif segment.marker == SOS and interval:
            # A marker behind the last interval has nothing to separate.
            end = len(data[segment.end : segment.scan_end].rstrip(b"\0\xff")) + segment.end
            found = [m for m in _RESTART.finditer(data, segment.end, segment.scan_end) if m.end() < end]
            units = _coding_units(data, layout, segment)
            places = tuple(m.start(1) for m in found)
            scans.append(_Scan(max(0, _units(units, interval) - 1), places, tuple(data[at] - 0xD0 for at in places)))
    return scans


def _coding_units(data: bytes, layout: Layout, scan: Segment) -> int:
    """The scan's number of minimum coded units (T.81, A.2)."""
    frame = layout.frame
    if frame is None:
        return 0
    body = data[frame.payload : frame.end]
    height, width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
    sampling = {
        body[6 + 3 * i]: (body[7 + 3 * i] >> 4, body[7 + 3 * i] & 15)
        for i in range(min(body[5], (len(body) - 6) // 3))
    }
    widest = max((across for across, _ in sampling.values()), default=0)
    highest = max((down for _, down in sampling.values()), default=0)
    names = data[scan.payload + 1 : scan.end][: 2 * sum(data[scan.payload : scan.payload + 1]) : 2]
    if not widest or not highest:
        return 0
    if len(names) == 1:
        # A component alone in its scan is coded block by block, without the rest of a unit at the edges.
        factors = sampling.get(names[0], (1, 1))
        return _units(_units(width * factors[0], widest), 8) * _units(_units(height * factors[1], highest), 8)
    return _units(width, 8 * widest) * _units(height, 8 * highest)


def _units(length: int, unit: int) -> int:
    return -(-length // unit)
