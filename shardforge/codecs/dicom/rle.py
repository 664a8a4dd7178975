"""DICOM RLE Lossless frames (PS3.5 G): one segment for each byte of each sample, the highest byte first."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import imagecodecs
import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.encaps import encapsulate
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import RLELossless

from shardforge.codecs.samples import attempt
from shardforge.dicom.facts import PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_HEADER = 64
_LONGEST_SIDE = 65536


def rle_frame(stream: bytes, pixel_format: PixelFormat) -> tuple[NDArray[Any], str, tuple[Flag, ...]]:
    """The cells of a frame, of any width; 1-bit frames are packed, as native ones are.

    Returns:
        [H, W] or [H, W, 3] before BitsStored is looked at, who decoded, and ``suspect`` for segments of an odd
        length, which only pydicom reads.

    Raises:
        SampleError: ``corrupt``.
    """
    size, count = _cells(pixel_format)
    _check_header(stream, pixel_format.samples * size)
    flags: tuple[Flag, ...] = ()
    decoder = f"imagecodecs {imagecodecs.__version__} dicomrle"
    needed, segments = count * size * pixel_format.samples, size * pixel_format.samples
    content = _imagecodecs(stream, size)
    spare = len(content) - needed
    if not 0 <= spare <= segments:
        raise SampleError(Reason.CORRUPT, f"RLE decodes to {len(content)} bytes, {needed} are needed")
    if spare and segments > 1:
        # Segments that end in a pad byte: it shifts what stands behind it.
        content, flags = pydicom_rle(stream, pixel_format), (Flag.SUSPECT,)
        decoder = f"pydicom {pydicom.__version__} rle"
    return arrange_planes(content, pixel_format), decoder, flags


def _check_header(stream: bytes, needed: int) -> None:
    """One segment behind the other, all of them inside the stream (PS3.5 G.5): decoders read wherever they are sent.

    Raises:
        SampleError: ``corrupt``, ``truncated``.
    """
    if len(stream) < _HEADER:
        raise SampleError(Reason.TRUNCATED, "the frame ends inside the RLE header")
    segments, *offsets = struct.unpack_from("<16I", stream)
    if segments != needed or needed > 15:
        raise SampleError(Reason.CORRUPT, f"{segments} RLE segments, {needed} are needed")
    edges = (*offsets[:needed], len(stream))
    if edges[0] < _HEADER or any(end <= start for start, end in pairwise(edges)):
        raise SampleError(Reason.CORRUPT, f"RLE segments at {edges}")


def _cells(pixel_format: PixelFormat) -> tuple[int, int]:
    """Bytes of a cell, and cells of a plane; 1-bit pixels stand eight in a cell."""
    pixels = pixel_format.rows * pixel_format.columns
    if pixel_format.bits_allocated == 1:
        return 1, -(-pixels // 8)
    return pixel_format.bits_allocated // 8, pixels


def _imagecodecs(stream: bytes, size: int) -> bytes:
    return bytes(attempt(lambda: np.frombuffer(imagecodecs.dicomrle_decode(stream, f"<u{size}"), np.uint8)))


def pydicom_rle(stream: bytes, pixel_format: PixelFormat) -> bytes:
    """Another decoder: the bytes of the frame, plane by plane, little endian.

    Raises:
        SampleError: ``corrupt``.
    """
    size, count = _cells(pixel_format)

    # pydicom knows no 1-bit RLE: its bytes are decoded, in any shape with sides that it allows.
    rows = next(side for side in range(1, count + 1) if count % side == 0 and count // side < _LONGEST_SIDE)
    options: dict[str, Any] = {
        "rows": rows,
        "columns": count // rows,
        "samples_per_pixel": pixel_format.samples,
        "photometric_interpretation": "MONOCHROME2" if pixel_format.samples == 1 else "RGB",
        "planar_configuration": 1,
        "bits_allocated": 8 * size,
        "bits_stored": 8 * size,
        "pixel_representation": 0,
        "number_of_frames": 1,
        "pixel_keyword": "PixelData",
    }

    def decode() -> NDArray[Any]:
        decoder = get_decoder(RLELossless)
        return decoder.as_array(encapsulate([stream]), index=0, raw=True, decoding_plugin="pydicom", **options)[0]

    values = attempt(decode)
    planes = values if pixel_format.samples == 1 else values.reshape(count, 3).T
    return planes.astype(f"<u{size}").tobytes()


def arrange_planes(content: bytes, pixel_format: PixelFormat) -> NDArray[Any]:
    """Plane by plane → [H, W] or [H, W, 3]."""
    size, count = _cells(pixel_format)
    shape = (pixel_format.rows, pixel_format.columns)
    planes = np.frombuffer(content, f"<u{size}", count * pixel_format.samples).reshape(pixel_format.samples, count)
    if pixel_format.bits_allocated == 1:
        planes = np.unpackbits(planes, axis=1, count=shape[0] * shape[1], bitorder="little")
    if pixel_format.samples == 1:
        return planes.reshape(shape)
    return np.ascontiguousarray(planes.T).reshape(*shape, 3)
