"""Counts of the stored pixels, for a split's statistics."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from shardforge.shards.moments import tally
from shardforge.shards.statistics import LEVELS, Histogram

_EXACT_FLOAT32 = 1 << 24
"""Counts up to here are exact in the float32 that cv2.calcHist returns."""


def count_levels(pixels: NDArray[Any]) -> Histogram | None:
    """Counts of pixels [height, width, channels].

    Returns:
        int64 [channels, 256] of uint8; of uint16 what :func:`tally` gives, of int16 what it gives for the values +
        32768; None for float32, whose sums would depend on the order of work.
    """
    if pixels.dtype == np.float32:
        return None
    if pixels.dtype == np.int16:
        return tally((pixels.astype(np.int32) + 32768).astype(np.uint16))
    if pixels.dtype == np.uint16:
        return tally(pixels)
    channels = pixels.shape[2]
    if pixels.shape[0] * pixels.shape[1] < _EXACT_FLOAT32:
        counts = [cv2.calcHist([pixels], [channel], None, [LEVELS], [0, LEVELS]) for channel in range(channels)]
        return np.stack([count.ravel() for count in counts]).astype(np.int64)
    return np.stack([np.bincount(pixels[:, :, channel].ravel(), minlength=LEVELS) for channel in range(channels)])
