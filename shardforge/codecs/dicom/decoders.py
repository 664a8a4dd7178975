"""Decoders of compressed frames: which codec a transfer syntax means, and who decodes it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import imagecodecs
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs import jpeg as jpeg_files
from shardforge.codecs.dicom import syntaxes as ts
from shardforge.codecs.dicom.codestream import (
    Codestream,
    ColourSpace,
    codestream_start,
    read_codestream,
    with_colours,
)
from shardforge.codecs.samples import Header, attempt
from shardforge.dicom.facts import PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_IMAGECODECS = f"imagecodecs {imagecodecs.__version__}"

CODECS: dict[str, str] = {
    ts.JPEG_BASELINE: "jpeg",
    ts.JPEG_EXTENDED: "jpeg",
    ts.JPEG_SPECTRAL: "jpeg",
    ts.JPEG_PROGRESSIVE: "jpeg",
    ts.JPEG_LOSSLESS: "jpeg_lossless",
    ts.JPEG_LOSSLESS_SV1: "jpeg_lossless",
    ts.JPEG_LS_LOSSLESS: "jpegls",
    ts.JPEG_LS_NEAR: "jpegls",
    ts.J2K_LOSSLESS: "j2k",
    ts.J2K: "j2k",
    "1.2.840.10008.1.2.4.92": "j2k",
    "1.2.840.10008.1.2.4.93": "j2k",
    ts.HTJ2K_LOSSLESS: "j2k",
    ts.HTJ2K_RPCL: "j2k",
    ts.HTJ2K: "j2k",
    ts.JXL_LOSSLESS: "jxl",
    ts.JXL_JPEG: "jxl",
    ts.JXL: "jxl",
    ts.RLE: "rle",
    ts.DEFLATED_FRAMES: "deflate",
}
"""Transfer syntax → codec. What a frame's own first bytes say counts more."""


@dataclass(frozen=True)
class Decoded:
    """Samples of a compressed frame, as the codec has them.

    Attributes:
        values: integers, [H, W] or [H, W, 3].
        bits: precision of the codestream.
        colours: ``RGB`` where the codec has converted to it; None where the colours are as stored.
        decoder: library, its version, and the codec.
        flags: what was noticed.
    """

    values: NDArray[Any]
    bits: int
    colours: str | None
    decoder: str
    flags: tuple[Flag, ...] = ()


def decode_codestream(stream: bytes, syntax: str, pixel_format: PixelFormat) -> Decoded:
    """Decodes a frame of any of the JPEG family.

    Args:
        stream: one frame.
        syntax: transfer syntax; another codec than it names is decoded too, and flagged ``ts_mismatch``.

    Raises:
        SampleError: ``corrupt``, ``truncated``, ``unsupported``, ``bad_header``; the stream's size is compared with
            the header's before it is decoded.
    """
    info = read_codestream(stream)
    size = (info.width, info.height)
    if size != (pixel_format.columns, pixel_format.rows):
        header = f"{pixel_format.columns} x {pixel_format.rows}"
        raise SampleError(Reason.CORRUPT, f"the codestream has {size[0]} x {size[1]} pixels, the header {header}")
    if info.components not in (None, pixel_format.samples):
        raise SampleError(Reason.CORRUPT, f"{info.components} components, the header has {pixel_format.samples}")
    decoded = _DECODERS[info.codec](stream, info, pixel_format)
    expected = (info.height, info.width) if pixel_format.samples == 1 else (info.height, info.width, 3)
    if decoded.values.shape != expected or decoded.values.dtype.kind not in "ui":
        raise SampleError(Reason.CORRUPT, f"decodes to {decoded.values.shape} of {decoded.values.dtype}")
    expected_codec = CODECS.get(syntax)
    lossy_either = {info.codec, expected_codec} == {"jpeg", "jpeg_lossless"}
    mismatch = (Flag.TS_MISMATCH,) if expected_codec not in (None, info.codec) and not lossy_either else ()
    return Decoded(
        decoded.values, decoded.bits, decoded.colours, decoded.decoder, (*info.flags, *decoded.flags, *mismatch)
    )


def _jpeg(stream: bytes, info: Codestream, pixel_format: PixelFormat) -> Decoded:
    """Lossy JPEG of 8 or 12 bits; colours come as RGB.

    Who is right about the colours: the stream (component identifiers, Adobe marker, JFIF, in this order) before the
    header.
    """
    stated: ColourSpace = "YCBCR" if pixel_format.photometric.startswith("YBR") else "RGB"
    colours = info.colours or stated
    rgb = "RGB" if pixel_format.samples == 3 else None
    flags = (Flag.PHOTOMETRIC_MISMATCH,) if rgb and colours != stated else ()
    if info.precision == 8:
        marked = with_colours(stream, colours) if rgb else stream
        samples = jpeg_files.decode(marked, Header("jpeg", info.width, info.height))
        return Decoded(samples.values, 8, rgb, f"simplejpeg {simplejpeg.__version__} jpeg", (*samples.flags, *flags))
    _require_end(stream)
    space = colours if rgb else None
    values = attempt(lambda: imagecodecs.jpeg8_decode(stream, colorspace=space, outcolorspace=rgb))
    return Decoded(values, info.precision or 8, rgb, f"{_IMAGECODECS} jpeg8", flags)


def _jpeg_lossless(stream: bytes, info: Codestream, pixel_format: PixelFormat) -> Decoded:
    """Lossless JPEG; colours as stored, since this process has no colour transform (PS3.5 8.2.1).

    imagecodecs' ljpeg would know it too, but crashes on damaged streams.
    """
    _require_end(stream)
    space = "RGB" if pixel_format.samples == 3 else None
    values = attempt(lambda: imagecodecs.jpeg8_decode(stream, colorspace=space, outcolorspace=space))
    return Decoded(values, info.precision or 8, None, f"{_IMAGECODECS} jpeg8")


def _require_end(stream: bytes) -> None:
    """Of a stream that is cut, these decoders return a picture, or take their time before they give up."""
    if b"\xff\xd9" not in stream[-4096:] and b"\xff\xd9" not in stream:
        raise SampleError(Reason.TRUNCATED, "no end marker")


def _jpegls(stream: bytes, info: Codestream, pixel_format: PixelFormat) -> Decoded:
    _require_end(stream)
    values = attempt(lambda: imagecodecs.jpegls_decode(stream))
    return Decoded(values, info.precision or 8, None, f"{_IMAGECODECS} jpegls")


def _j2k(stream: bytes, info: Codestream, pixel_format: PixelFormat) -> Decoded:
    """JPEG 2000 and HTJ2K. A JP2 file's boxes are left out: the DICOM header says how to read the samples."""
    bare = stream[codestream_start(stream) :]
    values = attempt(lambda: imagecodecs.jpeg2k_decode(bare, numthreads=1))
    bits = info.precision or 8
    differs = info.signed != pixel_format.signed or bits < pixel_format.bits_stored
    flags: tuple[Flag, ...] = (Flag.CODESTREAM_MISMATCH,) if differs else ()
    if info.colours is not None and pixel_format.photometric in ("YBR_FULL", "YBR_FULL_422"):
        flags = (*flags, Flag.PHOTOMETRIC_MISMATCH)
    # Without a transform there is nothing that could have made YBR_RCT or YBR_ICT of RGB.
    rgb = info.colours is not None or pixel_format.photometric in ("YBR_RCT", "YBR_ICT")
    return Decoded(values, bits, "RGB" if rgb else None, f"{_IMAGECODECS} jpeg2k", flags)


def _jxl(stream: bytes, info: Codestream, pixel_format: PixelFormat) -> Decoded:
    values = attempt(lambda: imagecodecs.jpegxl_decode(stream, numthreads=1))
    rgb = "RGB" if pixel_format.samples == 3 else None
    return Decoded(values, values.dtype.itemsize * 8, rgb, f"{_IMAGECODECS} jpegxl")


_DECODERS: dict[str, Callable[[bytes, Codestream, PixelFormat], Decoded]] = {
    "jpeg": _jpeg,
    "jpeg_lossless": _jpeg_lossless,
    "jpegls": _jpegls,
    "j2k": _j2k,
    "jxl": _jxl,
}


def inflate_frame(stream: bytes, needed: int) -> tuple[bytes, str]:
    """The native bytes of a deflated frame, and who inflated them (PS3.5 A.4.13).

    Raises:
        SampleError: ``corrupt``, ``truncated`` for fewer bytes than needed; more are not inflated.
    """
    try:
        data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(stream, needed)
    except zlib.error as error:
        raise SampleError(Reason.CORRUPT, f"deflated frame: {error}") from None
    if len(data) < needed:
        raise SampleError(Reason.TRUNCATED, f"the frame inflates to {len(data)} bytes, {needed} are needed")
    return data, f"zlib {zlib.ZLIB_RUNTIME_VERSION}"
