"""How many frames or pages a file has, found by walking over its blocks without reading what is in them.

This is for planning: it runs in the planner's own process, so it reads a few bytes at a time, in Python alone, and
gives up at a limit. The numbers are those of :func:`shardforge.codecs.header.read_header`, but for HEIF and JPEG XL:
nothing reaches more than one of their pictures, so planning takes them for one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from shardforge.codecs.sniff import sniff
from shardforge.codecs.tiff import is_page

_MAX_TAGS = 4096
_SUBFILE, _WIDTH, _HEIGHT = 254, 256, 257
_INTEGERS = {1: "B", 3: "H", 4: "I"}


@dataclass(frozen=True)
class FrameCount:
    """What a file says of its frames: how many, and the sum of their width × height (1, 0 for other files)."""

    frames: int
    pixels: int


class _EndsEarlyError(Exception):
    pass


class _Reader:
    """Reads exactly what is asked for."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self.size = file, size

    def at(self, offset: int, count: int) -> bytes:
        if offset + count > self.size:
            raise _EndsEarlyError
        self._file.seek(offset)
        data = self._file.read(count)
        if len(data) < count:
            raise _EndsEarlyError
        return data

    def numbers(self, layout: str, offset: int) -> tuple[int, ...]:
        return struct.unpack(layout, self.at(offset, struct.calcsize(layout)))


def count_frames(file: BinaryIO, size: int, most: int) -> FrameCount:
    """Counts the frames of a GIF, APNG, animated WebP, multi-page TIFF or AVIF sequence; other files have one.

    A file that ends early or makes no sense has the frames that were found before, at least one.

    Args:
        file: seekable.
        size: bytes in it.
        most: counting stops beyond so many frames.

    Raises:
        OSError: it cannot be read.
    """
    reader = _Reader(file, size)
    count = _COUNTERS.get(sniff(reader.at(0, min(size, 512))) or "")
    return FrameCount(1, 0) if count is None else count(reader, most)


def _png(reader: _Reader, most: int) -> FrameCount:
    """The number of frames stands before the pixels, so nothing behind the first of those matters."""
    frames, pixels, at = 1, 0, 8
    try:
        width, height = reader.numbers(">II", 16)
        pixels = width * height
        while True:
            length, kind = struct.unpack(">I4s", reader.at(at, 8))
            if kind in (b"IDAT", b"IEND") or at + 12 + length > reader.size:
                break
            if kind == b"acTL" and length == 8:
                frames = reader.numbers(">I", at + 8)[0]
            at += 12 + length
    except _EndsEarlyError:
        pass
    return _alike(frames, pixels)


def _alike(frames: int, pixels: int) -> FrameCount:
    """Frames of one size; at least one."""
    return FrameCount(max(1, frames), max(1, frames) * pixels)


def _gif(reader: _Reader, most: int) -> FrameCount:
    frames = pixels = 0
    try:
        width, height, packed = reader.numbers("<HHB", 6)
        pixels = width * height
        at = 13 + (3 << ((packed & 7) + 1) if packed & 0x80 else 0)
        while at < reader.size and frames <= most:
            (kind,) = reader.at(at, 1)
            if kind == 0x21:
                at = _skip_blocks(reader, at + 2)
            elif kind == 0x2C:
                (packed,) = reader.at(at + 9, 1)
                at = _skip_blocks(reader, at + 11 + (3 << ((packed & 7) + 1) if packed & 0x80 else 0))
                frames += 1
            else:
                break
    except _EndsEarlyError:
        pass
    return _alike(frames, pixels)


def _skip_blocks(reader: _Reader, at: int) -> int:
    while True:
        (length,) = reader.at(at, 1)
        at += 1 + length
        if not length:
            return at


def _webp(reader: _Reader, most: int) -> FrameCount:
    frames, pixels, at = 0, 0, 12
    try:
        while frames <= most:
            kind, length = struct.unpack("<4sI", reader.at(at, 8))
            if kind == b"VP8X":
                size = reader.at(at + 12, 6)
                pixels = (int.from_bytes(size[:3], "little") + 1) * (int.from_bytes(size[3:], "little") + 1)
            elif kind in (b"VP8 ", b"VP8L"):
                break
            frames += kind == b"ANMF"
            at += 8 + length + (length & 1)
    except _EndsEarlyError:
        pass
    return _alike(frames, pixels)


def _tiff(reader: _Reader, most: int) -> FrameCount:
    order = "<" if reader.at(0, 2) == b"II" else ">"
    frames = pixels = 0
    try:
        big = reader.numbers(order + "H", 2)[0] == 43
        head, entry, offset_layout = ("Q", "HHQ8s", "Q") if big else ("H", "HHI4s", "I")
        (offset,) = reader.numbers(order + offset_layout, 8 if big else 4)
        seen: set[int] = set()
        while offset and offset not in seen and len(seen) < 2 * most + 16 and frames <= most:
            first = not seen
            seen.add(offset)
            (count,) = reader.numbers(order + head, offset)
            if count > _MAX_TAGS:
                break
            at = offset + struct.calcsize(order + head)
            entries = reader.at(at, count * struct.calcsize(order + entry))
            tags = _numbers(struct.iter_unpack(order + entry, entries), order)
            if first or is_page(tags.get(_SUBFILE, 0)):
                frames, pixels = frames + 1, pixels + tags.get(_WIDTH, 0) * tags.get(_HEIGHT, 0)
            (offset,) = reader.numbers(order + offset_layout, at + len(entries))
    except _EndsEarlyError:
        pass
    return FrameCount(max(1, frames), pixels)


def _numbers(entries: Iterator[tuple[int, int, int, bytes]], order: str) -> dict[int, int]:
    """The single integers among the tags of a directory."""
    return {
        number: struct.unpack_from(order + _INTEGERS[kind], value)[0]
        for number, kind, count, value in entries
        if count == 1 and kind in _INTEGERS
    }


def _avif(reader: _Reader, most: int) -> FrameCount:
    """The first track of a sequence (ISO/IEC 14496-12, 8.3.2 and 8.7.3)."""
    frames, pixels, start, stop = 1, 0, 0, reader.size
    try:
        for wanted in (b"moov", b"trak"):
            start, stop = _box(reader, wanted, start, stop)
        _, head_end = _box(reader, b"tkhd", start, stop)
        # The last two fields are the size in 16.16 fixed point.
        width, height = reader.numbers(">II", head_end - 8)
        pixels = (width >> 16) * (height >> 16)
        for wanted in (b"mdia", b"minf", b"stbl", b"stsz"):
            start, stop = _box(reader, wanted, start, stop)
        if stop - start >= 12:
            (frames,) = reader.numbers(">I", start + 8)
    except _EndsEarlyError:
        pass
    return _alike(frames, pixels)


def _box(reader: _Reader, wanted: bytes, at: int, stop: int) -> tuple[int, int]:
    """Where the content of the first box of a type begins and ends, between two offsets."""
    while at + 8 <= stop:
        size, kind = struct.unpack(">I4s", reader.at(at, 8))
        payload = at + 8
        if size == 1:
            (size,) = reader.numbers(">Q", payload)
            payload += 8
        end = stop if size == 0 else at + size
        if not payload <= end <= stop:
            break
        if kind == wanted:
            return payload, end
        at = end
    raise _EndsEarlyError


_COUNTERS: dict[str, Callable[[_Reader, int], FrameCount]] = {
    "png": _png,
    "gif": _gif,
    "webp": _webp,
    "tiff": _tiff,
    "avif": _avif,
}
