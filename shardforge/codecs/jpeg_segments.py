"""The segments of a JPEG file (ITU-T T.81, annex B), walked without decoding."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

SOI, EOI, SOS, DHT, DAC, JPG, COM = 0xD8, 0xD9, 0xDA, 0xC4, 0xCC, 0xC8, 0xFE
APP0, APP1, APP2, APP14, APP15 = 0xE0, 0xE1, 0xE2, 0xEE, 0xEF
FRAMES = frozenset(range(0xC0, 0xD0)) - {DHT, JPG, DAC}
JPEG_LS = 0xF7
PROGRESSIVE = frozenset((0xC2, 0xC6, 0xCA, 0xCE))
_STANDALONE = frozenset((0x01, *range(0xD0, 0xD8)))
# The end of entropy-coded data: a marker that is neither a stuffed byte nor a restart marker.
_MARKER_IN_SCAN = re.compile(rb"\xff(?=[^\x00\xd0-\xd7\xff])")
_MARKER = re.compile(rb"\xff+(?=[^\x00\xff])")


@dataclass(frozen=True)
class Segment:
    """One marker segment.

    Attributes:
        marker: second byte of the marker.
        start: offset of the marker's first byte.
        payload: offset behind the length field.
        end: offset behind the segment.
        scan_end: offset behind the entropy-coded data that follows (``end`` if none does).
    """

    marker: int
    start: int
    payload: int
    end: int
    scan_end: int


@dataclass(frozen=True)
class Layout:
    """A JPEG file's segments up to the end of its first picture.

    Attributes:
        segments: in file order, start and end markers left out.
        junk: bytes between segments that belong to none.
        ended: the end marker is there.
    """

    segments: tuple[Segment, ...]
    junk: int
    ended: bool

    @property
    def frame(self) -> Segment | None:
        """The first frame header (SOF), if there is one."""
        return next((s for s in self.segments if s.marker in FRAMES or s.marker == JPEG_LS), None)


@dataclass(frozen=True)
class Frame:
    """A frame header: its kind (second byte of the marker), precision in bits, size, and component identifiers."""

    kind: int
    precision: int
    width: int
    height: int
    components: tuple[int, ...]


def walk(data: bytes, *, whole: bool) -> Layout:
    """Finds the segments.

    Args:
        whole: go through all scans to the end marker; otherwise stop at the first scan.

    Raises:
        SampleError: ``truncated`` if the data ends inside a segment, ``corrupt`` for impossible lengths or markers.
    """
    segments: list[Segment] = []
    at, junk = 2, 0
    while True:
        found = _MARKER.search(data, at)
        if found is None:
            return Layout(tuple(segments), junk, False)
        junk += found.start() - at
        start, marker = found.end() - 1, data[found.end()]
        payload = start + 4
        if marker == EOI:
            return Layout(tuple(segments), junk, True)
        if marker in _STANDALONE:
            at = start + 2
            continue
        if marker == SOI:
            raise SampleError(Reason.CORRUPT, "a second start marker inside the picture")
        length = int.from_bytes(data[start + 2 : payload], "big")
        end = start + 2 + length
        if payload > len(data) or end > len(data):
            raise SampleError(Reason.TRUNCATED, f"the file ends inside segment {marker:#x}")
        if length < 2:
            raise SampleError(Reason.CORRUPT, f"segment {marker:#x} of length {length}")
        at = end
        if marker == SOS and whole:
            following = _MARKER_IN_SCAN.search(data, end)
            at = len(data) if following is None else following.start()
        segments.append(Segment(marker, start, payload, end, at))
        if marker == SOS and not whole:
            return Layout(tuple(segments), junk, False)


def frame_of(data: bytes, layout: Layout) -> Frame:
    """The picture's frame header (T.81, B.2.2).

    Raises:
        SampleError: there is none, or it is impossible.
    """
    segment = layout.frame
    if segment is None:
        reached = layout.ended or any(s.marker == SOS for s in layout.segments)
        raise SampleError(Reason.CORRUPT if reached else Reason.TRUNCATED, "no frame header")
    body = data[segment.payload : segment.end]
    if len(body) < 6 or len(body) < 6 + 3 * body[5] or body[5] == 0:
        raise SampleError(Reason.BAD_HEADER, "frame header too short")
    height, width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
    if height == 0 and width:
        raise SampleError(Reason.UNSUPPORTED, "the height is given after the first scan (DNL)")
    if width == 0:
        raise SampleError(Reason.BAD_HEADER, f"{width} x {height} pixels")
    components = tuple(body[6 + 3 * i] for i in range(body[5]))
    return Frame(segment.marker, body[0], width, height, components)


def has_adobe(data: bytes, layout: Layout) -> bool:
    """Whether an Adobe APP14 segment tells the colour transform (Adobe TN 5116)."""
    return any(
        s.marker == APP14 and data[s.payload : s.payload + 5] == b"Adobe" and s.end - s.payload >= 12
        for s in layout.segments
    )


def scans_complete(data: bytes, layout: Layout, frame: Frame) -> bool:
    """Whether the scans bring every coefficient of every component to full precision (T.81, B.2.3 and G.1)."""
    missing = {component: set(range(64)) for component in frame.components}
    for scan in (s for s in layout.segments if s.marker == SOS):
        body = data[scan.payload : scan.end]
        count = body[0] if body else 0
        if len(body) < 4 + 2 * count:
            return False
        first, last, low = body[1 + 2 * count], body[2 + 2 * count], body[3 + 2 * count] & 15
        if frame.kind not in PROGRESSIVE:
            first, last, low = 0, 63, 0
        if low == 0:
            for i in range(count):
                missing.get(body[1 + 2 * i], set()).difference_update(range(first, last + 1))
    return not any(missing.values())


def rebuild(data: bytes, layout: Layout, keep: Callable[[Segment], bool]) -> bytes:
    """The file again, with the wanted segments only, nothing between them, and an end marker."""
    parts = [data[s.start : s.scan_end] for s in layout.segments if keep(s)]
    return b"".join((b"\xff\xd8", *parts, b"\xff\xd9"))


def icc_profile(data: bytes, layout: Layout) -> tuple[bytes | None, bool]:
    """The colour profile from its APP2 segments (ICC.1:2010, B.4), and whether they could be put together."""
    parts: dict[int, bytes] = {}
    total, readable = 0, True
    for segment in layout.segments:
        body = data[segment.payload : segment.end]
        if segment.marker != APP2 or not body.startswith(b"ICC_PROFILE\0"):
            continue
        if len(body) < 14 or body[12] in parts:
            readable = False
            continue
        parts[body[12]], total = body[14:], body[13]
    if not parts:
        return None, readable
    if sorted(parts) != list(range(1, total + 1)):
        return None, False
    return b"".join(parts[number] for number in sorted(parts)), readable


def exif_block(data: bytes, layout: Layout) -> bytes | None:
    """The first EXIF block."""
    for segment in layout.segments:
        if segment.marker == APP1 and data[segment.payload : segment.payload + 4] == b"Exif":
            return data[segment.payload : segment.end]
    return None
