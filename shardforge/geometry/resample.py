"""Resizing of measured values (Hounsfield units, say), before any window is applied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shardforge.geometry.resize import KERNELS, Box, Placement, Resampler, inside

Values = NDArray[Any]


def resize_values(
    values: Values, placement: Placement, resampler: Resampler, fill: float, box: Box | None = None
) -> Values:
    """Resizes with an antialiased kernel in float32 and lays the result on the canvas.

    Args:
        values: int16, int32 or float32 [H, W]. Of int32, 24 bits survive.
        fill: value of the canvas around the picture.
        box: left, top, right and bottom of the source in ``values``, if it is not all of them.

    Returns:
        [placement.height, placement.width] of the same dtype; integers are rounded half to even, and saturate where
        a kernel with negative lobes overshoots the dtype.
    """
    inner_size = (placement.inner_width, placement.inner_height)
    inner = values
    if box is not None or inner_size != (values.shape[1], values.shape[0]):
        picture = Image.fromarray(values.astype(np.float32, copy=False))
        inner = np.asarray(picture.resize(inner_size, KERNELS[resampler], box))
        if values.dtype != np.float32:
            limits = np.iinfo(values.dtype)
            inner = np.rint(inner).clip(limits.min, limits.max).astype(values.dtype)
    if inner_size == (placement.width, placement.height):
        return inner
    canvas = np.full((placement.height, placement.width), fill, values.dtype)
    canvas[inside(placement)] = inner
    return canvas


def resize_flags(flags: NDArray[np.bool_], placement: Placement, outside: bool, box: Box | None = None) -> Values:
    """Brings marks of single pixels (padding, say) to where :func:`resize_values` brings their values: each pixel has
    the mark that lies under its centre.

    Args:
        flags: bool [H, W].
        outside: the mark of the canvas around the picture.

    Returns:
        bool [placement.height, placement.width].
    """
    left, top, right, bottom = box or (0.0, 0.0, float(flags.shape[1]), float(flags.shape[0]))
    rows = _centres(placement.inner_height, top, bottom, flags.shape[0])
    columns = _centres(placement.inner_width, left, right, flags.shape[1])
    canvas = np.full((placement.height, placement.width), outside)
    canvas[inside(placement)] = flags[rows[:, None], columns]
    return canvas


def _centres(count: int, low: float, high: float, size: int) -> NDArray[np.int64]:
    places = low + (np.arange(count) + 0.5) * (high - low) / count
    return np.floor(places).astype(np.int64).clip(0, size - 1)
