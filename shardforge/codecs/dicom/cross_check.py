"""A frame decoded once more, by somebody else.

================  ================================  ====================
encoded as        second decoder                    greatest difference
================  ================================  ====================
native            pydicom                           none
RLE               pydicom                           none
deflated frames   imagecodecs (libdeflate)          none
JPEG of 8 bits    OpenCV (its own libjpeg-turbo)    1; colours 2
JPEG lossless     imagecodecs (its own jpegsof3)    none
HTJ2K, lossless   imagecodecs (OpenJPH)             none
================  ================================  ====================

Here is no second one for JPEG of more than 8 bits, JPEG-LS, JPEG 2000 (all that is installed builds on OpenJPEG),
JPEG XL, floating point, and native YBR_FULL_422. OpenJPH lets lossy HTJ2K wrap around where it should clip.
"""

from __future__ import annotations

from typing import Any

import cv2
import imagecodecs
import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.pixels.decoders.base import get_decoder
from pydicom.uid import UID

from shardforge.codecs.dicom import syntaxes as ts
from shardforge.codecs.dicom.codestream import ColourSpace, codestream_start, read_codestream, with_colours
from shardforge.codecs.dicom.decoders import CODECS
from shardforge.codecs.dicom.fragments import join
from shardforge.codecs.dicom.native import arrange, frame_bits, is_subsampled
from shardforge.codecs.dicom.pixels import StoredFrame
from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.dicom.rle import arrange_planes, pydicom_rle
from shardforge.codecs.samples import attempt
from shardforge.dicom.facts import PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_HTJ2K = frozenset((ts.HTJ2K_LOSSLESS, ts.HTJ2K_RPCL))
Second = tuple[NDArray[Any], str, int]


def cross_check(file: DicomFile, frame: int, decoded: StoredFrame) -> str | None:
    """Compares a decoded frame with what a second, independent decoder makes of the same bytes.

    Args:
        decoded: the frame, as :func:`shardforge.codecs.dicom.pixels.decode_frame` gave it, not salvaged.

    Returns:
        The second decoder and its version; None if there is none for this kind of frame.

    Raises:
        SampleError: ``decoders_disagree``, also where the second decoder refuses what the first accepted.
    """
    try:
        second = _native(file, frame) if file.fragments is None else _encapsulated(file, frame)
    except SampleError as error:
        raise SampleError(Reason.DECODERS_DISAGREE, f"{decoded.decoder} decodes; {error.detail}") from None
    if second is None:
        return None
    values, name, tolerance = second
    if values.shape != decoded.values.shape:
        raise SampleError(Reason.DECODERS_DISAGREE, f"{decoded.values.shape} and {values.shape} from {name}")
    difference = int(np.abs(values.astype(np.int64) - decoded.values.astype(np.int64)).max())
    if difference > tolerance:
        raise SampleError(Reason.DECODERS_DISAGREE, f"{decoded.decoder} and {name} differ by {difference}")
    return name


def _stored(cells: NDArray[Any], of: PixelFormat) -> NDArray[np.int64]:
    """Stored values by the plain formula (PS3.5 8.1.1), in another way than the fast one takes."""
    low = of.high_bit + 1 - of.bits_stored
    plain = cells.astype(cells.dtype.newbyteorder("="))
    unsigned = plain.view(f"u{plain.dtype.itemsize}").astype(object if of.bits_allocated == 64 else np.int64)
    values = (unsigned >> low) & ((1 << of.bits_stored) - 1)
    if of.signed:
        values = np.where(values >= 1 << (of.bits_stored - 1), values - (1 << of.bits_stored), values)
    return values.astype(np.uint64 if of.bits_allocated == 64 and not of.signed else np.int64).astype(np.int64)


def _native(file: DicomFile, frame: int) -> Second | None:
    of = file.format
    if of.kind != "int" or is_subsampled(of) or file.transfer_syntax not in ts.NATIVE:
        return None
    value = file.data[file.pixels.start : file.pixels.start + (file.pixels.length or 0)]
    # pydicom refuses every frame where a later one is missing.
    whole = min(file.frames, len(value) * 8 // frame_bits(of))
    options: dict[str, Any] = {
        "rows": of.rows,
        "columns": of.columns,
        "samples_per_pixel": of.samples,
        "photometric_interpretation": of.photometric,
        "planar_configuration": int(of.planar),
        "bits_allocated": of.bits_allocated,
        "bits_stored": of.bits_allocated,
        "pixel_representation": 0,
        "number_of_frames": whole,
        "pixel_keyword": "PixelData",
        "pixel_vr": file.pixels.vr or "OW",
    }
    syntax = UID(ts.EXPLICIT_LE if file.pixels.little else ts.EXPLICIT_BE)
    cells = attempt(lambda: get_decoder(syntax).as_array(value, index=frame, raw=True, **options)[0])
    return _stored(cells, of) if of.bits_allocated > 1 else cells, f"pydicom {pydicom.__version__} native", 0


def _encapsulated(file: DicomFile, frame: int) -> Second | None:
    of = file.format
    stream = join(file.data, (file.fragments or ())[frame])
    codec = CODECS.get(file.transfer_syntax)
    if codec == "rle":
        cells = arrange_planes(pydicom_rle(stream, of), of)
        return (_stored(cells, of) if of.bits_allocated > 1 else cells), f"pydicom {pydicom.__version__} rle", 0
    imaging = f"imagecodecs {imagecodecs.__version__}"
    if codec == "deflate":
        room = bytearray(-(-frame_bits(of) // 8))
        content = attempt(lambda: np.frombuffer(imagecodecs.deflate_decode(stream, raw=True, out=room), np.uint8))
        cells = arrange(content, of)
        return (_stored(cells, of) if of.bits_allocated > 1 else cells), f"{imaging} deflate", 0
    info = read_codestream(stream)
    if info.codec == "jpeg" and info.precision == 8:
        return _opencv(stream, of)
    if info.codec == "jpeg_lossless":
        return _stored(attempt(lambda: imagecodecs.jpegsof3_decode(stream)), of), f"{imaging} jpegsof3", 0
    if info.codec == "j2k" and file.transfer_syntax in _HTJ2K and info.signed == of.signed:
        bare = stream[codestream_start(stream) :]
        return attempt(lambda: imagecodecs.htj2k_decode(bare)), f"{imaging} htj2k", 0
    return None


def _opencv(stream: bytes, of: PixelFormat) -> Second:
    name = f"opencv {cv2.__version__} jpeg"
    if of.samples == 1:
        return attempt(lambda: _read(stream, cv2.IMREAD_GRAYSCALE)), name, 1
    stated: ColourSpace = "YCBCR" if of.photometric.startswith("YBR") else "RGB"
    marked = with_colours(stream, read_codestream(stream).colours or stated)
    flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
    return attempt(lambda: _read(marked, flags)), name, 2


def _read(stream: bytes, flags: int) -> NDArray[Any]:
    values = cv2.imdecode(np.frombuffer(stream, np.uint8), flags)
    if values is None:
        raise SampleError(Reason.CORRUPT, "OpenCV refuses it")
    return values
