"""What a compressed frame says about itself, before it is decoded."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from shardforge.codecs import jxl
from shardforge.codecs.isobmff import boxes
from shardforge.codecs.jpeg_segments import APP0, APP14, JPEG_LS, SOS, Layout, frame_of, walk
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_LOSSLESS = frozenset((0xC3, 0xC7, 0xCB, 0xCF))
_SEQUENTIAL = frozenset((0xC0, 0xC1))
ColourSpace = Literal["RGB", "YCBCR"]


@dataclass(frozen=True)
class Codestream:
    """The header of one compressed frame.

    Attributes:
        codec: ``jpeg`` (lossy), ``jpeg_lossless``, ``jpegls``, ``j2k`` or ``jxl``.
        width, height: in pixels.
        components: colour channels; None where the header is not read so far (JPEG XL).
        precision: bits of a sample; None likewise.
        signed: the samples are (JPEG 2000).
        colours: what the stream itself says of three components (JPEG, JPEG 2000); None if nothing.
        flags: ``jpeg_bad_sos``.
    """

    codec: Literal["jpeg", "jpeg_lossless", "jpegls", "j2k", "jxl"]
    width: int
    height: int
    components: int | None = None
    precision: int | None = None
    signed: bool = False
    colours: ColourSpace | None = None
    flags: tuple[Flag, ...] = ()


def read_codestream(stream: bytes) -> Codestream:
    """The header of a compressed frame, whatever the transfer syntax says it is.

    Raises:
        SampleError: ``corrupt`` for what is no codestream, ``truncated``, ``bad_header``, ``unsupported``.
    """
    try:
        if stream[:3] == b"\xff\xd8\xff":
            return _jpeg(stream)
        if stream[:2] == b"\xff\x4f" or stream[4:8] == b"jP  ":
            return _j2k(stream)
        if stream[:2] == b"\xff\x0a" or stream[4:8] == b"JXL ":
            header = jxl.read_header(stream)
            return Codestream("jxl", header.width, header.height)
    except (struct.error, IndexError):
        raise SampleError(Reason.TRUNCATED, "the codestream ends inside its header") from None
    raise SampleError(Reason.CORRUPT, f"no codestream, begins with {stream[:4].hex()}")


def _jpeg(stream: bytes) -> Codestream:
    layout = walk(stream, whole=False)
    frame = frame_of(stream, layout)
    size = (frame.width, frame.height, len(frame.components), frame.precision)
    if frame.kind == JPEG_LS:
        return Codestream("jpegls", *size)
    if frame.kind in _LOSSLESS:
        return Codestream("jpeg_lossless", *size)
    colours = _jpeg_colours(stream, layout, frame.components)
    flags = (Flag.JPEG_BAD_SOS,) if frame.kind in _SEQUENTIAL and _bad_sos(stream, layout) else ()
    return Codestream("jpeg", *size, colours=colours, flags=flags)


def _jpeg_colours(stream: bytes, layout: Layout, components: tuple[int, ...]) -> ColourSpace | None:
    """Component identifiers before the Adobe marker before JFIF (which knows YCbCr alone)."""
    if components == (0x52, 0x47, 0x42):
        return "RGB"
    found: ColourSpace | None = None
    for segment in layout.segments:
        body = stream[segment.payload : segment.end]
        if segment.marker == APP14 and body[:5] == b"Adobe" and len(body) >= 12 and body[11] in (0, 1):
            return "YCBCR" if body[11] else "RGB"
        if segment.marker == APP0 and body[:5] == b"JFIF\0":
            found = "YCBCR"
    return found


def with_colours(stream: bytes, colours: ColourSpace) -> bytes:
    """The JPEG stream with markers that tell every decoder which colours its three components are.

    What libjpeg takes them for without: YCbCr by a JFIF marker, else by Adobe's, else RGB by the identifiers alone.
    """
    layout = walk(stream, whole=False)
    doubtful = [segment for segment in layout.segments if segment.marker in (APP0, APP14)]
    marker = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0" + (b"\1" if colours == "YCBCR" else b"\0")
    parts, at = [b"\xff\xd8", marker], 2
    for segment in doubtful:
        parts.append(stream[at : segment.start])
        at = segment.end
    return b"".join((*parts, stream[at:]))


def _bad_sos(stream: bytes, layout: Layout) -> bool:
    """Spectral selection 0 to 63 and no approximation are all that sequential scans may say (T.81, table B.3)."""
    last = layout.segments[-1]
    return last.marker == SOS and stream[last.end - 3 : last.end] != b"\0\x3f\0"


def _j2k(stream: bytes) -> Codestream:
    at = codestream_start(stream)
    x1, y1, x0, y0, tile_width, tile_height = struct.unpack_from(">IIIIII", stream, at + 8)
    (components,) = struct.unpack_from(">H", stream, at + 40)
    depths = {stream[at + 42 + 3 * number] for number in range(components)}
    if len(depths) != 1 or not tile_width or not tile_height:
        raise SampleError(
            Reason.UNSUPPORTED, f"{len(depths)} kinds of components, tiles {tile_width} x {tile_height}"
        )
    if any(stream[at + 43 + 3 * number : at + 45 + 3 * number] != b"\1\1" for number in range(components)):
        raise SampleError(Reason.UNSUPPORTED, "subsampled JPEG 2000 components")
    depth = depths.pop()
    transformed = _walk_j2k(stream, at)
    return Codestream(
        "j2k",
        x1 - x0,
        y1 - y0,
        components,
        (depth & 0x7F) + 1,
        bool(depth & 0x80),
        # The decoder undoes the transform, and what was transformed was RGB (T.800, annex G).
        "RGB" if transformed and components == 3 else None,
    )


def codestream_start(stream: bytes) -> int:
    """Offset of a JPEG 2000 codestream, bare or in a JP2 file.

    Raises:
        SampleError: ``corrupt``.
    """
    if stream[:2] == b"\xff\x4f":
        return 0
    box = next((box for box in boxes(stream, 0, len(stream)) if box.kind == b"jp2c"), None)
    if box is None or stream[box.payload : box.payload + 4] != b"\xff\x4f\xff\x51":
        raise SampleError(Reason.CORRUPT, "a JP2 file without a codestream")
    return box.payload


def _walk_j2k(stream: bytes, at: int) -> bool:
    """Whether the components are transformed; adds up the tile-parts, as decoders may fill in what is missing.

    Raises:
        SampleError: ``truncated`` (T.800, A.4.2 and A.6.1), ``corrupt``.
    """
    transformed = False
    at += 2
    while stream[at : at + 2] != b"\xff\x90":
        if at + 4 > len(stream):
            raise SampleError(Reason.TRUNCATED, "the codestream ends before its first tile")
        if stream[at] != 0xFF:
            raise SampleError(Reason.CORRUPT, "no marker where one has to be")
        if stream[at + 1] == 0x52:
            transformed = stream[at + 8] != 0
        at += 2 + max(2, int.from_bytes(stream[at + 2 : at + 4], "big"))
    while stream[at : at + 2] == b"\xff\x90":
        length = int.from_bytes(stream[at + 6 : at + 10], "big")
        if length == 0:
            break
        at += max(12, length)
        if at > len(stream):
            raise SampleError(Reason.TRUNCATED, "the codestream ends inside a tile")
    return transformed
