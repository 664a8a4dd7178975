"""Formats with one simple header each: BMP, JPEG 2000, QOI, PSD, ICO, PCX, TGA."""

from __future__ import annotations

import io
import struct

import imagecodecs
import numpy as np
from PIL import Image

from shardforge.codecs.isobmff import boxes
from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_BMP_UNCOMPRESSED = (0, 3, 6)
"""BI_RGB, BI_BITFIELDS, BI_ALPHABITFIELDS."""
_PILLOW_NAMES = {"bmp": "BMP", "ico": "ICO", "pcx": "PCX", "psd": "PSD", "tga": "TGA"}


def read_bmp_header(data: bytes) -> Header:
    """Windows and OS/2 bitmaps; a negative height means rows from top to bottom.

    A file without the last bytes of its rows, which pad each to whole words, is ``suspect``; one that lacks more does
    not decode.
    """
    width, height = _dib_size(data, 14)
    return Header("bmp", width, height, flags=(Flag.SUSPECT,) if _bmp_end(data, width, height) > len(data) else ())


def _bmp_end(data: bytes, width: int, height: int) -> int:
    """The offset behind the rows; 0 if they are compressed."""
    (begin, size) = struct.unpack_from("<II", data, 10)
    (bits,) = struct.unpack_from("<H", data, 24 if size == 12 else 28)
    (compression,) = (0,) if size == 12 else struct.unpack_from("<I", data, 30)
    return begin + (width * bits + 31) // 32 * 4 * height if compression in _BMP_UNCOMPRESSED else 0


def _dib_size(data: bytes, at: int) -> tuple[int, int]:
    (size,) = struct.unpack_from("<I", data, at)
    if size == 12:
        width, height = struct.unpack_from("<HH", data, at + 4)
    else:
        width, height = struct.unpack_from("<ii", data, at + 4)
    return width, abs(height)


def read_jpeg2000_header(data: bytes) -> Header:
    """The size from the codestream (ITU-T T.800, A.5.1).

    Raises:
        SampleError: ``truncated``; ``unsupported`` for more than four components.
    """
    x1, y1, x0, y0, components, _ = struct.unpack_from(">IIII16xHB", data, _codestream(data) + 8)
    if components > 4:
        raise SampleError(Reason.UNSUPPORTED, f"{components} components")
    return Header("jpeg2000", max(0, x1 - x0), max(0, y1 - y0))


def _codestream(data: bytes) -> int:
    if data[:2] == b"\xff\x4f":
        return 0
    box = next((box for box in boxes(data, 0, len(data)) if box.kind == b"jp2c"), None)
    at = box.payload if box is not None else data.find(b"\xff\x4f\xff\x51")
    if at < 0 or data[at : at + 4] != b"\xff\x4f\xff\x51":
        raise SampleError(Reason.TRUNCATED, "no codestream")
    return at


def read_qoi_header(data: bytes) -> Header:
    """The QOI specification's header."""
    return Header("qoi", *struct.unpack_from(">II", data, 4))


def read_psd_header(data: bytes) -> Header:
    """Adobe Photoshop file format, file header section."""
    height, width = struct.unpack_from(">II", data, 14)
    return Header("psd", width, height)


def read_ico_header(data: bytes) -> Header:
    """The largest size that the directory or an embedded picture declares."""
    (count,) = struct.unpack_from("<H", data, 4)
    widths, heights = [0], [0]
    for entry in range(count):
        width, height, size, at = struct.unpack_from("<BB6xII", data, 6 + 16 * entry)
        widths.append(width or 256)
        heights.append(height or 256)
        if data[at : at + 4] == b"\x89PNG":
            width, height = struct.unpack_from(">II", data, at + 16)
        elif size:
            # The embedded bitmap counts the rows of its transparency mask too.
            width, height = _dib_size(data, at)
            height //= 2
        widths.append(width)
        heights.append(height)
    return Header("ico", max(widths), max(heights))


def read_pcx_header(data: bytes) -> Header:
    """ZSoft PCX, window coordinates."""
    x0, y0, x1, y1 = struct.unpack_from("<HHHH", data, 4)
    return Header("pcx", max(0, x1 - x0 + 1), max(0, y1 - y0 + 1))


def read_tga_header(data: bytes) -> Header:
    """Truevision TGA 2.0, image specification."""
    return Header("tga", *struct.unpack_from("<HH", data, 12))


def decode_jpeg2000(data: bytes, header: Header) -> Samples:
    """JPEG 2000 through OpenJPEG; the depth is that of the first component."""
    bits = (data[_codestream(data) + 42] & 0x7F) + 1
    values = attempt(lambda: imagecodecs.jpeg2k_decode(data, numthreads=1))
    return plain_samples(values, (1 << bits) - 1 if values.dtype.kind == "u" and bits <= 16 else None)


def decode_qoi(data: bytes, header: Header) -> Samples:
    """QOI."""
    return plain_samples(attempt(lambda: imagecodecs.qoi_decode(data)))


def _open(data: bytes, header: Header) -> Image.Image:
    """Opens with the one named plug-in of Pillow, none of which needs a library Pillow may be built without."""
    try:
        picture: Image.Image = Image.open(io.BytesIO(data), formats=[_PILLOW_NAMES[header.format]])
        if picture.width * picture.height > header.width * header.height:
            raise SampleError(Reason.CORRUPT, f"two sizes: {header.width} x {header.height} and {picture.size}")
        picture.load()
    except Image.DecompressionBombError as error:
        raise SampleError(Reason.OVER_BUDGET, str(error)) from None
    except (SampleError, MemoryError):
        raise
    except Exception as error:
        early = "truncated" in str(error)
        raise SampleError(Reason.TRUNCATED if early else Reason.CORRUPT, f"{type(error).__name__}: {error}") from None
    return picture


def decode_pillow(data: bytes, header: Header) -> Samples:
    """Everything that only Pillow reads, first frame.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``over_budget`` or ``unsupported``.
    """
    picture = _open(data, header)
    if header.format == "tga" and not data[17] & 15:
        # The image descriptor says that no bit of a pixel is opacity.
        picture = picture.convert("RGB") if picture.mode == "RGBA" else picture
    if picture.mode in ("1", "P", "PA") or "transparency" in picture.info:
        clear = picture.mode == "PA" or "transparency" in picture.info
        picture = picture.convert("RGBA" if clear else "L" if picture.mode == "1" else "RGB")
    values = np.asarray(picture)
    if picture.mode == "CMYK":
        return Samples(values, "cmyk")
    if picture.mode not in ("L", "LA", "RGB", "RGBA"):
        raise SampleError(Reason.UNSUPPORTED, f"pixels of mode {picture.mode}")
    return plain_samples(values)


def bmp_labels(data: bytes, header: Header) -> Array:
    """The stored sample values or palette indices of a BMP, [H, W] or [H, W, C], uint8.

    Raises:
        SampleError: as :func:`decode_pillow`.
    """
    return np.asarray(_open(data, header)).astype(np.uint8)
