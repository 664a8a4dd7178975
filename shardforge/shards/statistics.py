"""Pixel statistics from integer histograms, which merge exactly in any order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Histogram = npt.NDArray[np.int64]
"""Counts of shape [channels, 256]."""

LEVELS = 256


@dataclass(frozen=True)
class PixelStatistics:
    """Statistics of a split's uint8 pixels, before lossy encoding.

    Attributes:
        mean, std: per channel, in units of the full range (0…1); ``std`` is the population's.
        histogram: per channel, 256 counts.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    histogram: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(histogram: Histogram) -> PixelStatistics | None:
        """Statistics of a histogram [channels, 256], or None when it counts no pixels.

        Sums are exact integers (Python's, unbounded); only the last division and root are rounded, so the result
        does not depend on how the histogram was put together.
        """
        rows = [[int(count) for count in row] for row in histogram]
        if not rows or not any(rows[0]):
            return None
        mean, std = zip(*(_moments(row) for row in rows), strict=True)
        return PixelStatistics(mean, std, tuple(tuple(row) for row in rows))


def _moments(counts: Sequence[int]) -> tuple[float, float]:
    n = sum(counts)
    first = sum(level * count for level, count in enumerate(counts))
    second = sum(level * level * count for level, count in enumerate(counts))
    return first / (n * 255), math.sqrt(n * second - first * first) / (n * 255)


def merge(histograms: Iterable[Histogram], channels: int) -> Histogram:
    """The sum of histograms [channels, 256]."""
    total = np.zeros((channels, LEVELS), np.int64)
    for histogram in histograms:
        total += histogram
    return total
