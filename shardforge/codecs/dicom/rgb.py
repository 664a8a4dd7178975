"""Stored values of a colour image → 8-bit RGB."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.dicom.pixels import StoredFrame
from shardforge.codecs.dicom.read import DicomFile
from shardforge.dicom.colour import to_uint8, ybr_to_rgb
from shardforge.dicom.palette import palette_to_rgb
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason


def is_colour(file: DicomFile) -> bool:
    """Whether pixels are shown in colour: three samples each, or through a palette."""
    return file.format.samples == 3 or file.format.photometric == "PALETTE COLOR"


def frame_to_rgb(file: DicomFile, frame: StoredFrame) -> tuple[NDArray[np.uint8], tuple[Flag, ...]]:
    """The colours of a decoded frame.

    Returns:
        uint8 [H, W, 3], and ``palette_depth_mismatch``.

    Raises:
        SampleError: ``bad_header`` for a palette that is missing or unusable, ``unsupported`` for colours other than
            RGB, YBR_FULL(_422) and PALETTE COLOR.
    """
    if frame.photometric == "PALETTE COLOR":
        if file.palette is None or frame.values.dtype.kind not in "ui":
            raise SampleError(Reason.BAD_HEADER, "PALETTE COLOR without a usable palette")
        return palette_to_rgb(frame.values, file.palette)
    if file.format.samples != 3 or frame.values.dtype.kind != "u":
        raise SampleError(Reason.UNSUPPORTED, f"{frame.photometric} is no colour image")
    if frame.photometric == "RGB":
        return to_uint8(frame.values, file.format.bits_stored), ()
    if frame.photometric in ("YBR_FULL", "YBR_FULL_422"):
        return ybr_to_rgb(to_uint8(frame.values, file.format.bits_stored)), ()
    raise SampleError(Reason.UNSUPPORTED, f"colours are {frame.photometric}")
