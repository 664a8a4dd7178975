"""Resizing of measured values (Hounsfield units, say), before any window is applied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shardforge.geometry.exact_resize import LIMIT, MOST_SHRINK, resize_exactly
from shardforge.geometry.kernels import KERNELS, Resampler
from shardforge.geometry.resize import Placement, inside

Values = NDArray[Any]


def cut_out(pixels: Values, placement: Placement) -> Values:
    """The part of a whole picture [H, W, …] that a placement was made for, as a view."""
    rows = slice(placement.crop_top, placement.crop_top + placement.source_height)
    columns = slice(placement.crop_left, placement.crop_left + placement.source_width)
    return pixels[rows, columns]


def resize_values(values: Values, placement: Placement, resampler: Resampler, fill: float) -> Values:
    """Resizes with an antialiased kernel and lays the result on the canvas.

    Args:
        values: int16, int32 or float32 [H, W] of the placement's source size. Of int32 beyond 17 bits, 24 survive.
        fill: value of the canvas around the picture.

    Returns:
        [placement.height, placement.width] of the same dtype; integers are rounded half to even, and saturate where
        a kernel with negative lobes overshoots the dtype.
    """
    inner_size = (placement.inner_width, placement.inner_height)
    inner = values
    if inner_size != (placement.source_width, placement.source_height):
        if _is_exact(values, placement):
            inner = resize_exactly(values, inner_size, resampler)
        else:
            picture = Image.fromarray(values.astype(np.float32, copy=False))
            inner = np.asarray(picture.resize(inner_size, KERNELS[resampler]))
        if values.dtype != np.float32:
            limits = np.iinfo(values.dtype)
            rounded = np.rint(inner)
            inner = np.clip(rounded, limits.min, limits.max, out=rounded).astype(values.dtype)
    if inner_size == (placement.width, placement.height):
        return inner
    canvas = np.full((placement.height, placement.width), fill, values.dtype)
    canvas[inside(placement)] = inner
    return canvas


def _is_exact(values: Values, placement: Placement) -> bool:
    if 1 / min(placement.scale_x, placement.scale_y) > MOST_SHRINK or values.dtype == np.float32:
        return False
    return values.dtype == np.int16 or bool(values.max() < LIMIT and values.min() > -LIMIT)
