"""Pixel padding: pixels that are no part of the image (PS3.3 C.7.5.1.1.2)."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import FrameMeaning

Scalar = TypeVar("Scalar", bound=np.generic)


def padding_mask(stored: NDArray[Any], meaning: FrameMeaning) -> NDArray[np.bool_] | None:
    """Where stored values [H, W] mean "no image here": bool [H, W], or None where no pixel does.

    Belongs before the modality transformation: padding values are stored values.
    """
    if meaning.padding is None:
        return None
    low, high = meaning.padding
    mask = stored == low if low == high else (stored >= low) & (stored <= high)
    return mask if mask.any() else None


def padding_fraction(mask: NDArray[np.bool_] | None) -> float:
    """The share of pixels that are padding, 0 to 1."""
    return 0.0 if mask is None else float(np.count_nonzero(mask) / mask.size)


def valid_values(values: NDArray[Scalar], mask: NDArray[np.bool_] | None) -> NDArray[Scalar]:
    """The values of unpadded pixels that are finite numbers, flat."""
    flat = values.ravel() if mask is None else values[~mask]
    return flat[np.isfinite(flat)] if flat.dtype.kind == "f" else flat


def fill_padding(values: NDArray[Scalar], mask: NDArray[np.bool_] | None, *, inverted: bool) -> NDArray[Scalar]:
    """Modality values with padding replaced by the darkest valid value, so that no resampling can smear it.

    The darkest is the smallest, or the largest where the lowest value is shown white (``inverted``). A frame without
    a single valid pixel stays as it is. The input is not changed.
    """
    if mask is None:
        return values
    valid = valid_values(values, mask)
    if not valid.size:
        return values
    filled = values.copy()
    filled[mask] = valid.max() if inverted else valid.min()
    return filled
