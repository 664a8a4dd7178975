"""Pixel counts of 16-bit images: a histogram of the high byte, and exact sums of the values and of their squares.

A histogram of 65,536 levels for each item would be larger than the item. The sums are kept as base-65536 digits in
columns behind the 256 counts, so that they add up like counts, exactly and in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_FIRST, _SECOND = 3, 4
COLUMNS = _FIRST + _SECOND
"""Digits behind the counts: of the sum of values (48 bits for each item), then of the sum of squares (64 bits)."""
_BLOCK = 1 << 22
_LEVELS = 256


def tally(pixels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Counts of the high byte and digits of the sums, int64 [channels, 256 + COLUMNS], of uint16 pixels [H, W, C]."""
    return np.stack([_row(pixels[:, :, channel]) for channel in range(pixels.shape[2])])


def _row(plane: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    values = plane.ravel()
    counts = np.zeros(_LEVELS, np.int64)
    first = second = 0
    for start in range(0, len(values), _BLOCK):
        part = values[start : start + _BLOCK].astype(np.uint64)
        counts += np.bincount((part >> np.uint64(8)).astype(np.intp), minlength=_LEVELS)
        # 2^22 squares of 32 bits stay below 2^54.
        first, second = first + int(part.sum()), second + int((part * part).sum())
    return np.array([*counts.tolist(), *_digits(first, _FIRST), *_digits(second, _SECOND)], np.int64)


def _digits(number: int, count: int) -> list[int]:
    return [number >> 16 * place & 0xFFFF for place in range(count)]


def sums_of(digits: Sequence[int]) -> tuple[int, int]:
    """The sum of values and the sum of squares, from digits that may have been added up."""
    first, second = digits[:_FIRST], digits[_FIRST:]
    return _number(first), _number(second)


def _number(digits: Sequence[int]) -> int:
    return sum(digit << 16 * place for place, digit in enumerate(digits))
