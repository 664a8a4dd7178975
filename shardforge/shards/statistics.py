"""Pixel statistics from integer histograms, which merge exactly in any order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shardforge.shards import moments

Histogram = npt.NDArray[np.int64]
"""Counts of shape [channels, 256]; of 16-bit images with the columns of :mod:`shardforge.shards.moments` behind."""

LEVELS = 256


@dataclass(frozen=True)
class PixelStatistics:
    """Statistics of a split's pixels, before lossy encoding.

    Attributes:
        mean, std: per channel, in units of the full range (0…1); ``std`` is the population's. Of int16 values the
            range is −32768…32767.
        histogram: per channel, 256 counts: of the values, or of the high bytes of 16-bit values.
        sums: per channel, the exact sums of 16-bit values and of their squares; None for 8 bits, where the histogram
            tells.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    histogram: tuple[tuple[int, ...], ...]
    sums: tuple[tuple[int, ...], ...] | None = None

    @staticmethod
    def of(histogram: Histogram) -> PixelStatistics | None:
        """Statistics of a histogram, or None when it counts no pixels.

        Sums are exact integers (Python's, unbounded); only the last division and root are rounded, so the result
        does not depend on how the histogram was put together.
        """
        rows = [[int(count) for count in row] for row in histogram]
        if not rows or not any(rows[0]):
            return None
        counts = tuple(tuple(row[:LEVELS]) for row in rows)
        if len(rows[0]) == LEVELS:
            mean, std = zip(*(_moments(row) for row in rows), strict=True)
            return PixelStatistics(mean, std, counts)
        return PixelStatistics.of_sums(counts, tuple(moments.sums_of(row[LEVELS:]) for row in rows))

    @staticmethod
    def of_sums(histogram: tuple[tuple[int, ...], ...], sums: tuple[tuple[int, ...], ...]) -> PixelStatistics | None:
        """Statistics of 16-bit values; None where sums and counts cannot belong together."""
        if len(sums) != len(histogram) or any(len(pair) != 2 for pair in sums):
            return None
        for row, (first, second) in zip(histogram, sums, strict=True):
            n, least = sum(row), sum(level * count for level, count in enumerate(row)) * LEVELS
            if not least <= first <= least + n * (LEVELS - 1) or not n or first * first > n * second:
                return None
        pairs = [
            _scaled(sum(row), first, second, 65535) for row, (first, second) in zip(histogram, sums, strict=True)
        ]
        mean, std = zip(*pairs, strict=True)
        return PixelStatistics(mean, std, histogram, sums)


def width(depth: int) -> int:
    """Columns of a histogram of images of 8 or 16 bits."""
    return LEVELS + (moments.COLUMNS if depth == 16 else 0)


def _moments(counts: Sequence[int]) -> tuple[float, float]:
    n = sum(counts)
    first = sum(level * count for level, count in enumerate(counts))
    second = sum(level * level * count for level, count in enumerate(counts))
    return _scaled(n, first, second, 255)


def _scaled(n: int, first: int, second: int, white: int) -> tuple[float, float]:
    return first / (n * white), math.sqrt(n * second - first * first) / (n * white)


def merge(histograms: Iterable[Histogram], channels: int, depth: int = 8) -> Histogram:
    """The sum of histograms [channels, width(depth)]."""
    total = np.zeros((channels, width(depth)), np.int64)
    for histogram in histograms:
        total += histogram
    return total
