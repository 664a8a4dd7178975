"""Stored values → modality values (Hounsfield units in CT): rescale or Modality LUT (PS3.3 C.11.1).

The type of the result follows from the parameters and from what the format can hold, never from the pixels of one
image: slices of a series with equal parameters have equal types, whatever they show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shardforge.dicom.facts import FrameMeaning, PixelFormat
from shardforge.dicom.lut import Tables, entries_of, identity_of, whole_domain

_TYPES = tuple(np.dtype(name) for name in ("int16", "int32", "float32"))
"""Each holds (float32: nearly) what the ones before it hold."""


def stored_range(fmt: PixelFormat) -> tuple[int, int]:
    """The lowest and the highest stored value that the format can hold (``kind`` is ``int``)."""
    if fmt.signed:
        return -(1 << (fmt.bits_stored - 1)), (1 << (fmt.bits_stored - 1)) - 1
    return 0, (1 << fmt.bits_stored) - 1


def usable_rescale(fmt: PixelFormat, slope: float, intercept: float) -> bool:
    """Whether a rescale tells stored values apart, and keeps all that the format can hold within float32.

    Of float pixel data, which know no bounds, that is asked of slope and intercept alone.
    """
    ends = stored_range(fmt) if fmt.kind == "int" else (1,)
    furthest = max(abs(end * slope + intercept) for end in ends)
    limits = np.finfo(np.float32)
    return bool(abs(slope) >= limits.tiny and max(furthest, abs(intercept)) <= limits.max)


def modality_dtype(fmt: PixelFormat, *meanings: FrameMeaning) -> np.dtype[Any]:
    """The type that holds the modality values of frames with these meanings: int16, int32 or float32.

    int16 where every possible value is whole and fits (slope and intercept whole, or a Modality LUT), int32 where
    the values are whole but larger, float32 otherwise.
    """
    return max((_dtype_of(fmt, meaning) for meaning in meanings), key=_TYPES.index)


def _dtype_of(fmt: PixelFormat, meaning: FrameMeaning) -> np.dtype[Any]:
    if meaning.modality_lut is not None:
        low, high = 0, int(meaning.modality_lut.data.max())
    elif fmt.kind != "int" or not all(float(n).is_integer() for n in (meaning.slope, meaning.intercept)):
        return _TYPES[2]
    else:
        ends = [value * int(meaning.slope) + int(meaning.intercept) for value in stored_range(fmt)]
        low, high = min(ends), max(ends)
    for dtype in _TYPES[:2]:
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return dtype
    return _TYPES[2]


class ModalityTables:
    """Applies the modality transformation, and keeps the tables of the last few sets of parameters.

    One per worker; not for several threads.

    Args:
        limit: tables kept, of at most 256 KiB each.
    """

    def __init__(self, limit: int = 16) -> None:
        self._tables = Tables(limit)

    def apply(
        self, stored: NDArray[Any], fmt: PixelFormat, meaning: FrameMeaning, dtype: DTypeLike | None = None
    ) -> NDArray[Any]:
        """Stored values of one frame (an integer type within the format's range, or a float) → modality values.

        Args:
            stored: any shape.
            dtype: of the result, where several frames must agree: what `modality_dtype` says of all of them. By
                default what it says of this one.

        Returns:
            A new array, int16, int32 or float32 (computed in float64), of the same shape.

        Raises:
            ValueError: ``dtype`` cannot hold the values of this frame.
        """
        needed = modality_dtype(fmt, meaning)
        target = needed if dtype is None else np.dtype(dtype)
        if target not in _TYPES or _TYPES.index(target) < _TYPES.index(needed):
            raise ValueError(f"modality values need {needed}, not {target}")
        if meaning.modality_lut is None and target.kind == "i":
            # Two's complement wraps around, and the result fits: no wider type is needed in between.
            slope, intercept = (np.int64(number).astype(target) for number in (meaning.slope, meaning.intercept))
            same = stored.dtype.itemsize == target.itemsize and stored.dtype.isnative
            values: NDArray[Any] = stored.view(target) if same else stored.astype(target)
            return np.asarray(np.add(values if slope == 1 else np.multiply(values, slope), intercept))
        if stored.dtype.kind == "f" or stored.dtype.itemsize > 2:
            return _computed(stored, meaning, target)
        lut = meaning.modality_lut
        steps = (meaning.slope, meaning.intercept) if lut is None else identity_of(lut)
        limits = np.iinfo(stored.dtype)
        table = self._tables.get(
            (stored.dtype, target, steps),
            lambda: _computed(whole_domain(int(limits.min), int(limits.max)), meaning, target),
        )
        return table.take(stored)


def _computed(stored: NDArray[Any], meaning: FrameMeaning, target: np.dtype[Any]) -> NDArray[Any]:
    if meaning.modality_lut is not None:
        return entries_of(meaning.modality_lut, stored).astype(target)
    with np.errstate(over="ignore", invalid="ignore"):
        return (stored.astype(np.float64) * meaning.slope + meaning.intercept).astype(target)
