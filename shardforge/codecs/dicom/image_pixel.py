"""The Image Pixel module of a dataset (PS3.3 C.7.6.3), checked before anything is allocated."""

from __future__ import annotations

from typing import Literal

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.values import Numbers, numbers, text
from shardforge.codecs.limits import Limits
from shardforge.dicom.facts import PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_SAMPLES, _PHOTOMETRIC, _PLANAR, _FRAMES, _ROWS, _COLUMNS = (
    0x00280002,
    0x00280004,
    0x00280006,
    0x00280008,
    0x00280010,
    0x00280011,
)
_ALLOCATED, _STORED, _HIGH, _SIGNED = 0x00280100, 0x00280101, 0x00280102, 0x00280103
_KINDS: dict[int, tuple[Literal["int", "float", "double"], int]] = {
    0x7FE00008: ("float", 32),
    0x7FE00009: ("double", 64),
}
_WIDEST_PIXEL = 8
_ONE_SAMPLE = ("MONOCHROME1", "MONOCHROME2", "PALETTE COLOR")


def has_image_module(dataset: Dataset) -> bool:
    """Whether anything is said of rows or columns."""
    return _ROWS in dataset or _COLUMNS in dataset


def read_pixel_format(dataset: Dataset, pixel_tag: int) -> PixelFormat:
    """The format of the pixel data.

    Args:
        pixel_tag: the element that holds them.

    Raises:
        SampleError: ``bad_header`` for what is missing or impossible, ``unsupported`` for legal oddities.
    """
    rows, columns = _whole(dataset, _ROWS), _whole(dataset, _COLUMNS)
    if rows is None or columns is None or rows < 1 or columns < 1:
        raise SampleError(Reason.BAD_HEADER, f"{rows} rows, {columns} columns")
    photometric = text(dataset, _PHOTOMETRIC).upper()
    samples = _whole(dataset, _SAMPLES, 3 if photometric.startswith(("RGB", "YBR")) else 1)
    if samples not in (1, 3):
        raise SampleError(Reason.UNSUPPORTED if samples == 4 else Reason.BAD_HEADER, f"{samples} samples a pixel")
    photometric = photometric or ("MONOCHROME2" if samples == 1 else "RGB")
    if samples == 1 and photometric not in _ONE_SAMPLE:
        # What is no known word says nothing of polarity, and a guess would be right for most files only.
        known = photometric.startswith(("RGB", "YBR"))
        told = photometric if known else "an unknown photometric interpretation"
        raise SampleError(Reason.BAD_HEADER, f"one sample a pixel in {told}")
    kind, width = _KINDS.get(pixel_tag, ("int", 0))
    allocated = width or _whole(dataset, _ALLOCATED, 0)
    if allocated not in (1, 8, 16, 32, 64):
        reason = Reason.UNSUPPORTED if allocated and 0 < allocated < 64 else Reason.BAD_HEADER
        raise SampleError(reason, f"{allocated} bits allocated")
    stored = _whole(dataset, _STORED, allocated) if kind == "int" else width
    high = _whole(dataset, _HIGH, None if stored is None else stored - 1) if kind == "int" else width - 1
    if stored is None or high is None or not 1 <= stored <= high + 1 <= allocated:
        raise SampleError(Reason.BAD_HEADER, f"{stored} bits stored, high bit {high} of {allocated}")
    # Colours have no sign (PS3.3 C.7.6.3.1.3).
    may_be_signed = kind == "int" and samples == 1 and allocated > 1
    sign = _whole(dataset, _SIGNED, 0) if may_be_signed else 0
    if sign not in (0, 1):
        raise SampleError(Reason.BAD_HEADER, f"a pixel representation of {sign}")
    signed = sign == 1
    planar = samples == 3 and _whole(dataset, _PLANAR, 0) == 1
    return PixelFormat(rows, columns, samples, allocated, stored, high, signed, planar, photometric, kind)


def read_frame_count(dataset: Dataset) -> tuple[int, tuple[Flag, ...]]:
    """NumberOfFrames; absent, empty and 0 mean one, the last of them with a flag.

    Raises:
        SampleError: ``bad_header`` for anything else than a natural number.
    """
    stated = numbers(dataset, _FRAMES, "IS")
    if not stated.values and stated.clean:
        return 1, ()
    count = stated.first
    if count is None or count < 0 or count != int(count):
        raise SampleError(Reason.BAD_HEADER, "no number of frames" if count is None else f"{count:g} frames")
    return (int(count), ()) if count else (1, (Flag.NUMBER_OF_FRAMES_0,))


def check_budget(pixel_format: PixelFormat, frames: int, limits: Limits) -> None:
    """Refuses what would cost more than the limits allow.

    Raises:
        SampleError: ``over_budget``.
    """
    pixels = pixel_format.rows * pixel_format.columns
    pixel_bytes = pixel_format.samples * max(1, pixel_format.bits_allocated // 8)
    # Samples wider than those of 16-bit RGBA count accordingly, as they do for ordinary images.
    if pixels * max(pixel_bytes, _WIDEST_PIXEL) > limits.pixels * _WIDEST_PIXEL:
        size = f"{pixel_format.rows} x {pixel_format.columns} pixels of {pixel_bytes} bytes"
        raise SampleError(Reason.OVER_BUDGET, f"{size}, {limits.pixels} of {_WIDEST_PIXEL} allowed")
    if frames > limits.frames:
        raise SampleError(Reason.OVER_BUDGET, f"{frames} frames, {limits.frames} allowed")


def _whole(dataset: Dataset, tag: int, default: int | None = None) -> int | None:
    """A natural number, or the default where the element is absent or empty.

    Raises:
        SampleError: ``bad_header`` where it is anything else.
    """
    stated: Numbers = numbers(dataset, tag, "US")
    if not stated.values:
        return default
    value = stated.first
    if value is None or value != int(value) or value < 0:
        told = "no number" if value is None else f"{value:g}"
        raise SampleError(Reason.BAD_HEADER, f"({tag >> 16:04x},{tag & 0xFFFF:04x}) is {told}")
    return int(value)
