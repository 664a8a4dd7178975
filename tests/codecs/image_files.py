"""Image files written by hand, byte for byte, so that tests need no encoder that could hide a decoder's mistake."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.decode import Picture, decode
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

LIMITS = Limits()


def rgb_scene(width: int = 6, height: int = 4) -> NDArray[np.uint8]:
    """[height, width, 3] with all pixels different."""
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    red, green = columns * 255 // max(1, width - 1), rows * 255 // max(1, height - 1)
    return np.stack([red, green, columns ^ rows], -1).astype(np.uint8)


def read(data: bytes, channels: Any = 3, background: tuple[int, int, int] = (255, 255, 255)) -> Picture:
    """Decodes with the usual limits."""
    return decode(data, channels=channels, background=background, limits=LIMITS)


def outcome(data: bytes) -> Picture | Reason:
    """The picture, or why there is none."""
    try:
        return read(data)
    except SampleError as error:
        return error.reason


def exif(orientation: int, order: str = "<", kind: int = 3) -> bytes:
    """A TIFF structure with nothing but tag 0x0112."""
    mark = b"II" if order == "<" else b"MM"
    value = struct.pack(order + ("HH" if kind == 3 else "I"), *((orientation, 0) if kind == 3 else (orientation,)))
    entry = struct.pack(order + "HHI", 0x0112, kind, 1) + value
    return mark + struct.pack(order + "HI", 42, 8) + struct.pack(order + "H", 1) + entry + struct.pack(order + "I", 0)


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """Length, type, content, checksum."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    rows: Sequence[bytes],
    width: int,
    depth: int,
    colour: int,
    before: Sequence[tuple[bytes, bytes]] = (),
    after: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:
    """A PNG of raw scanlines (filter 0), with chunks before and after the pixels."""
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [(b"IHDR", header), *before, (b"IDAT", pixels), *after, (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(kind, body) for kind, body in parts)


def png_of(pixels: NDArray[Any], before: Sequence[tuple[bytes, bytes]] = ()) -> bytes:
    """A PNG of an uint8 or uint16 array [H, W] or [H, W, 2..4]."""
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[1 if pixels.ndim == 2 else pixels.shape[2]]
    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    return png([row.tobytes() for row in big], pixels.shape[1], pixels.itemsize * 8, colour, before)


def tiff(tags: Mapping[int, tuple[int, Sequence[int]]], pixels: bytes, order: str = "<") -> bytes:
    """A TIFF of one strip. ``tags`` maps a number to (type, values); the strip's place and size are added."""
    formats = {1: "B", 3: "H", 4: "I"}
    entries = {**tags, 273: (4, [8]), 279: (4, [len(pixels)])}
    start = 8 + len(pixels) + len(pixels) % 2
    extra_at = start + 2 + 12 * len(entries) + 4
    table, extra = b"", b""
    for number, (kind, values) in sorted(entries.items()):
        packed = struct.pack(f"{order}{len(values)}{formats[kind]}", *values)
        if len(packed) > 4:
            field = struct.pack(order + "I", extra_at + len(extra))
            extra += packed
        else:
            field = packed.ljust(4, b"\0")
        table += struct.pack(order + "HHI", number, kind, len(values)) + field
    mark = b"II" if order == "<" else b"MM"
    head = mark + struct.pack(order + "HI", 42, start) + pixels + b"\0" * (len(pixels) % 2)
    return head + struct.pack(order + "H", len(entries)) + table + struct.pack(order + "I", 0) + extra


def tiff_of(pixels: NDArray[Any], photometric: int, **more: tuple[int, Sequence[int]]) -> bytes:
    """A little endian TIFF of an array [H, W] or [H, W, C]; further tags as ``tNUMBER=(type, values)``."""
    height, width = pixels.shape[:2]
    samples = 1 if pixels.ndim == 2 else pixels.shape[2]
    formats = {"u": 1, "i": 2, "f": 3}
    tags: dict[int, tuple[int, Sequence[int]]] = {
        256: (3, [width]),
        257: (3, [height]),
        258: (3, [pixels.itemsize * 8] * samples),
        259: (3, [1]),
        262: (3, [photometric]),
        277: (3, [samples]),
        278: (3, [height]),
        339: (3, [formats[pixels.dtype.kind]] * samples),
    }
    tags.update({int(name[1:]): value for name, value in more.items()})
    return tiff(tags, np.ascontiguousarray(pixels).tobytes())


def riff_chunk(kind: bytes, body: bytes) -> bytes:
    """One RIFF chunk with its padding."""
    return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP file of chunks."""
    content = b"WEBP" + b"".join(riff_chunk(kind, body) for kind, body in chunks)
    return b"RIFF" + len(content).to_bytes(4, "little") + content


def jpeg_segment(marker: int, body: bytes) -> bytes:
    """Marker, length, content."""
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + body


def with_segments(jpeg: bytes, *segments: bytes) -> bytes:
    """A JPEG with segments put right behind its start marker."""
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def corpus_file(corpus: Path, name: str) -> bytes:
    """A file of the corpus, by its path below ``images``."""
    return (corpus / "images" / name).read_bytes()
