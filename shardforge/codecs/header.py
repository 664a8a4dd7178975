"""What a file says about itself, from its header alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from shardforge.codecs import gif, heif_items, isobmff, jpeg, jxl, others, png, pnm, tiff, webp
from shardforge.codecs.limits import Limits
from shardforge.codecs.samples import Header
from shardforge.codecs.sniff import sniff
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_READERS: dict[str, Callable[[bytes], Header]] = {
    "jpeg": jpeg.read_header,
    "png": png.read_header,
    "webp": webp.read_header,
    "tiff": tiff.read_header,
    "gif": gif.read_header,
    "bmp": others.read_bmp_header,
    "pnm": pnm.read_header,
    "avif": isobmff.read_avif_header,
    "heif": heif_items.read_header,
    "jpeg2000": others.read_jpeg2000_header,
    "jxl": jxl.read_header,
    "qoi": others.read_qoi_header,
    "psd": others.read_psd_header,
    "ico": others.read_ico_header,
    "pcx": others.read_pcx_header,
    "tga": others.read_tga_header,
}


def read_header(data: bytes, limits: Limits, frame: int = 0) -> Header:
    """Format, size, frames, orientation and profile of an image file; no pixel is decoded.

    Args:
        data: the whole file.
        limits: what the file may cost; judged here, so that a bomb never reaches a decoder.
        frame: the frame or page that will be decoded.

    Raises:
        SampleError: ``empty``, ``not_an_image``, ``unsupported``, ``truncated``, ``corrupt``, ``bad_header`` or
            ``over_budget``.
    """
    if not data:
        raise SampleError(Reason.EMPTY)
    if len(data) > limits.source_bytes:
        raise SampleError(Reason.OVER_BUDGET, f"{len(data)} bytes, {limits.source_bytes} allowed")
    name = sniff(data)
    if name is None:
        raise SampleError(Reason.NOT_AN_IMAGE, f"begins with {data[:16]!r}")
    if name == "dicom":
        raise SampleError(Reason.UNSUPPORTED, "DICOM among ordinary images")
    read = _READERS.get(name)
    if read is None:
        raise SampleError(Reason.UNSUPPORTED, f"no decoder for {name}")
    try:
        header = tiff.read_header(data, frame) if name == "tiff" else read(data)
    except (struct.error, IndexError):
        raise SampleError(Reason.TRUNCATED, "the file ends inside the header") from None
    if header.width < 1 or header.height < 1:
        raise SampleError(Reason.BAD_HEADER, f"{header.width} x {header.height} pixels")
    _check(header, limits)
    if frame >= header.frames:
        raise SampleError(Reason.TRUNCATED, f"{header.frames} frames where number {frame} is wanted")
    if frame and name == "avif":
        # The decoder reaches a later frame of a sequence only by keeping all of them.
        _check(replace(header, pixel_bytes=header.pixel_bytes * header.frames), limits)
    return replace(header, frame=frame)


def _check(header: Header, limits: Limits) -> None:
    pixels = header.width * header.height
    # Samples wider than those of 16-bit RGBA count accordingly.
    if pixels * header.pixel_bytes > limits.pixels * 8:
        size = f"{header.width} x {header.height} pixels of {header.pixel_bytes} bytes"
        raise SampleError(Reason.OVER_BUDGET, f"{size}, {limits.pixels} of 8 allowed")
    if header.frames > limits.frames:
        raise SampleError(Reason.OVER_BUDGET, f"{header.frames} frames, {limits.frames} allowed")
