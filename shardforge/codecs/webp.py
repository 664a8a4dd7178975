"""WebP (RFC 9649): chunks, header and decoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import imagecodecs

from shardforge.codecs.exif import exif_orientation
from shardforge.codecs.samples import Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

ICC_FLAG, EXIF_FLAG, XMP_FLAG = 0x20, 0x08, 0x04
_SLACK = 8
"""Bytes; encoders end a picture with up to three that its decoder does not miss."""


@dataclass(frozen=True)
class Chunk:
    """One RIFF chunk: its type, its offset, and the offsets of its content; ``following`` includes the padding."""

    kind: bytes
    start: int
    payload: int
    end: int
    following: int


def chunks(data: bytes, start: int = 12, stop: int | None = None) -> Iterator[Chunk]:
    """The chunks between two offsets; the last may be cut off (``end`` is then beyond the data)."""
    stop = len(data) if stop is None else min(stop, len(data))
    at = start
    while at + 8 <= stop:
        kind, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length
        yield Chunk(kind, at, at + 8, end, end + (length & 1))
        at = end + (length & 1)


def _bitstream_size(data: bytes, chunk: Chunk) -> tuple[int, int]:
    if chunk.kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, chunk.payload + 6)
        return width & 0x3FFF, height & 0x3FFF
    (bits,) = struct.unpack_from("<I", data, chunk.payload + 1)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def read_header(data: bytes) -> Header:
    """Size (of the canvas), frames, orientation and profile.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    size: tuple[int, int] | None = None
    frames, orientation, profile = 0, None, None
    flags: list[Flag] = []
    try:
        for chunk in chunks(data):
            body = slice(chunk.payload, chunk.end)
            if chunk.kind == b"VP8X":
                low, mid, high, low_h, mid_h, high_h = struct.unpack_from("6B", data, chunk.payload + 4)
                size = (low | mid << 8 | high << 16) + 1, (low_h | mid_h << 8 | high_h << 16) + 1
            elif chunk.kind in (b"VP8 ", b"VP8L"):
                inner = _bitstream_size(data, chunk)
                if size not in (None, inner):
                    raise SampleError(Reason.CORRUPT, f"two sizes: {size} and {inner}")
                size = inner
            elif chunk.kind == b"ANMF":
                frames += 1
            elif chunk.kind == b"ICCP" and profile is None:
                profile = data[body]
            elif chunk.kind == b"EXIF" and orientation is None:
                orientation, readable = exif_orientation(data[body])
                if not readable:
                    flags.append(Flag.EXIF_UNREADABLE)
    except struct.error:
        raise SampleError(Reason.TRUNCATED, "the file ends inside the header") from None
    if size is None:
        raise SampleError(Reason.TRUNCATED, "no picture chunk")
    if 0 in size:
        raise SampleError(Reason.BAD_HEADER, f"{size[0]} x {size[1]} pixels")
    return Header("webp", *size, max(1, frames), orientation, profile, flags=tuple(dict.fromkeys(flags)))


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the first frame on the canvas; what it leaves uncovered is transparent.

    Raises:
        SampleError: ``truncated`` or ``corrupt``.
    """
    animated = any(chunk.kind == b"ANMF" for chunk in chunks(data))
    try:
        return plain_samples(attempt(lambda: imagecodecs.webp_decode(data, 0, hasalpha=True if animated else None)))
    except SampleError as error:
        (length,) = struct.unpack_from("<I", data, 4)
        if error.reason is Reason.CORRUPT and length + 8 > len(data):
            raise SampleError(Reason.TRUNCATED, error.detail) from None
        raise


def is_lossless(data: bytes) -> bool:
    """Whether no picture of the file, of all its frames, is encoded with loss."""
    kinds = {chunk.kind for chunk in chunks(data)}
    for frame in (chunk for chunk in chunks(data) if chunk.kind == b"ANMF"):
        kinds |= {part.kind for part in chunks(data, frame.payload + 16, frame.end)}
    return b"VP8L" in kinds and b"VP8 " not in kinds


def holds_only_picture(data: bytes) -> bool:
    """Whether a still WebP that decodes has one picture chunk, at most one of each other kind, none that only alpha
    or animation use, and no bytes behind the picture's own inside its chunk.

    The data of VP8 and VP8L have no length of their own (RFC 6386, 9.5: the last partition takes what is left), but
    their decoder fails when they end early. So the picture is decoded once more, without its last bytes: if that
    succeeds, they were none of its. Fewer than 8 bytes go unnoticed, and so do bytes inside an earlier partition.
    """
    found = list(chunks(data))
    kinds = [chunk.kind for chunk in found if chunk.kind in (b"VP8X", b"ICCP", b"VP8 ", b"VP8L")]
    pictures = [chunk for chunk in found if chunk.kind in (b"VP8 ", b"VP8L")]
    if len(pictures) != 1 or len(set(kinds)) < len(kinds) or {b"ALPH", b"ANIM", b"ANMF"} & {c.kind for c in found}:
        return False
    if any(chunk.kind == b"VP8X" and chunk.end - chunk.payload != 10 for chunk in found):
        return False
    (picture,) = pictures
    body = data[picture.payload : picture.end - _SLACK]
    content = b"WEBP" + picture.kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) & 1)
    try:
        attempt(lambda: imagecodecs.webp_decode(b"RIFF" + struct.pack("<I", len(content)) + content))
    except SampleError:
        return True
    return False
