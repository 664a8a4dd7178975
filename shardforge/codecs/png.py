"""PNG: chunks, header and decoding (PNG specification, third edition)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import imagecodecs

from shardforge.codecs.exif import exif_orientation
from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_NEEDED = frozenset((b"PLTE", b"tRNS", b"IDAT"))
_MAX_PROFILE = 2**24
_MAX_TEXT = 2**20


@dataclass(frozen=True)
class Chunk:
    """One chunk: its type, the offset of its length field, and the offsets of its content."""

    kind: bytes
    start: int
    payload: int
    end: int


def chunks(data: bytes) -> Iterator[Chunk]:
    """The chunks up to and including IEND; the last one may be cut off (``end`` is then beyond the data).

    Raises:
        SampleError: the first chunk is not a header.
    """
    if data[8:16] != b"\0\0\0\x0dIHDR"[: len(data[8:16])]:
        raise SampleError(Reason.CORRUPT, "does not begin with a header chunk")
    at = 8
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        yield Chunk(kind, at, at + 8, at + 8 + length)
        at += 12 + length
        if kind == b"IEND":
            return


def chunk_of(kind: bytes, body: bytes) -> bytes:
    """The bytes of a chunk."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _whole(data: bytes, chunk: Chunk) -> bool:
    return chunk.end + 4 <= len(data)


def is_intact(data: bytes, chunk: Chunk) -> bool:
    """Whether a chunk that is all there has the checksum of its content."""
    (stored,) = struct.unpack_from(">I", data, chunk.end)
    return bool(zlib.crc32(memoryview(data)[chunk.start + 4 : chunk.end]) == stored)


def read_header(data: bytes) -> Header:
    """Size, frames (APNG), orientation (eXIf) and profile (iCCP).

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    if len(data) < 33:
        raise SampleError(Reason.TRUNCATED, "the file ends inside the header chunk")
    found = list(chunks(data))
    width, height, depth, colour, *_ = struct.unpack_from(">IIBBBBB", data, 16)
    if not is_intact(data, found[0]):
        raise SampleError(Reason.CORRUPT, "wrong checksum in the header chunk")
    if not (0 < width < 2**31 and 0 < height < 2**31) or depth not in _DEPTHS.get(colour, ()):
        raise SampleError(Reason.BAD_HEADER, f"{width} x {height}, colour type {colour}, depth {depth}")
    frames, orientation, profile, pixels = 1, None, None, False
    flags: list[Flag] = []
    for chunk in found:
        if not _whole(data, chunk):
            break
        body = data[chunk.payload : chunk.end]
        if chunk.kind == b"acTL" and len(body) == 8 and not pixels:
            # Whether the default image is one of them or not.
            frames = int.from_bytes(body[:4], "big")
        elif chunk.kind == b"IDAT":
            pixels = True
        elif chunk.kind == b"eXIf" and orientation is None:
            orientation, readable = exif_orientation(body)
            if not readable:
                flags.append(Flag.EXIF_UNREADABLE)
        elif chunk.kind == b"iCCP" and profile is None:
            profile = _profile(body)
            if profile is None:
                flags.append(Flag.ICC_UNREADABLE)
        elif chunk.kind in (b"zTXt", b"iTXt") and _is_text_bomb(chunk.kind, body):
            flags.append(Flag.SUSPECT)
    return Header("png", width, height, max(1, frames), orientation, profile, flags=tuple(dict.fromkeys(flags)))


def _inflate(packed: bytes, limit: int) -> bytes | None:
    """At most ``limit`` bytes of a zlib stream; None if it is broken or longer."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit)
    except zlib.error:
        return None
    return content if stream.eof else None


def _profile(body: bytes) -> bytes | None:
    name, _, rest = body.partition(b"\0")
    return _inflate(rest[1:], _MAX_PROFILE) if rest[:1] == b"\0" and name else None


def _is_text_bomb(kind: bytes, body: bytes) -> bool:
    """Whether a text chunk inflates to over a mebibyte. The text is read by nobody here, but by readers elsewhere."""
    _, _, rest = body.partition(b"\0")
    if kind == b"iTXt":
        if rest[:1] != b"\1":
            return False
        rest = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    else:
        rest = rest[1:]
    stream = zlib.decompressobj()
    try:
        return len(stream.decompress(rest, _MAX_TEXT)) == _MAX_TEXT
    except zlib.error:
        return False


def _minimal(data: bytes, header_chunk: bytes, wanted: frozenset[bytes]) -> tuple[bytes, bool]:
    """The file with the chunks that pixels need, checksums verified; and whether the end chunk was there."""
    parts, ended = [SIGNATURE, header_chunk], False
    for chunk in chunks(data):
        if chunk.kind == b"IEND":
            ended = _whole(data, chunk)
        elif chunk.kind in wanted:
            if chunk.kind == b"IDAT" and not _whole(data, chunk):
                # The chunks before may hold the whole picture; the decoder will tell.
                break
            if not _whole(data, chunk):
                raise SampleError(Reason.TRUNCATED, f"the file ends inside {chunk.kind.decode('latin-1')}")
            if not is_intact(data, chunk):
                raise SampleError(Reason.CORRUPT, f"wrong checksum in {chunk.kind.decode('latin-1')}")
            parts.append(data[chunk.start : chunk.end + 4])
    return b"".join((*parts, b"\0\0\0\0IEND\xaeB`\x82")), ended


def _decode(data: bytes, header_chunk: bytes, wanted: frozenset[bytes]) -> tuple[Array, tuple[Flag, ...]]:
    minimal, ended = _minimal(data, header_chunk, wanted)
    # libspng is faster and does not print about interlacing, but it knows no tRNS, no 16 bits and no grey with alpha.
    depth, colour = header_chunk[16], header_chunk[17]
    simple = depth <= 8 and colour != 4 and b"tRNS" not in wanted
    run = imagecodecs.spng_decode if simple else imagecodecs.png_decode
    try:
        values = attempt(lambda: run(minimal))
    except SampleError as error:
        if error.reason is Reason.CORRUPT and not ended:
            raise SampleError(Reason.TRUNCATED, error.detail) from None
        raise
    return values, () if ended else (Flag.SUSPECT, Flag.PNG_MISSING_IEND)


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the default image; gAMA and cHRM are not applied, as in other readers.

    Raises:
        SampleError: ``truncated`` or ``corrupt``.
    """
    clear = any(chunk.kind == b"tRNS" for chunk in chunks(data))
    values, flags = _decode(data, data[8:33], _NEEDED if clear else _NEEDED - {b"tRNS"})
    samples = plain_samples(values)
    return Samples(samples.values, samples.model, samples.white, samples.alpha, flags=flags)


def decode_labels(data: bytes) -> Array:
    """The stored sample values, untouched: palette indices or grey levels at their own depth.

    Returns:
        [H, W] or [H, W, C], uint8 or uint16.
    """
    depth, colour = data[24], data[25]
    header = data[8:33]
    if colour == 3:
        # A palette picture is a grey one with a table of colours: declared as grey, it yields its indices.
        content = header[4:17] + b"\0" + header[18:21]
        header = header[:4] + content + struct.pack(">I", zlib.crc32(content))
    values, _ = _decode(data, header, frozenset((b"IDAT",)))
    # The decoder stretches 1, 2 and 4 bits to 0..255 by an exact factor.
    return values // (255 // ((1 << depth) - 1)) if depth < 8 else values
