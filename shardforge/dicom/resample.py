"""Separable resampling of modality values in plane, in a fixed order of operations: the same bits everywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Taps:
    """What each new pixel of an axis is made of.

    Attributes:
        first: int64 [M], the first old pixel of each.
        weights: float32 [T, M], of the old pixels from there on; they add up to 1.
    """

    first: NDArray[np.int64]
    weights: NDArray[np.float32]


def triangle_taps(source: int, target: int) -> Taps | None:
    """The triangle kernel (linear interpolation), stretched by the reduction so that it averages what it covers.

    The new pixel i has its centre at ``(i + 1/2)·source/target`` of the old axis, in pixels from its edge; an old
    pixel whose centre is d away weighs ``max(0, 1 - d/s)`` with ``s = max(1, source/target)``, normalised. Beyond the
    edges there is nothing, so that enlarging repeats the outermost pixel.

    Returns:
        None where the axis keeps its size.
    """
    if source == target:
        return None
    stretch = max(1.0, source / target)
    centres = (np.arange(target) + 0.5) * source / target - 0.5
    taps = min(source, int(np.ceil(2 * stretch)) + 1)
    first = np.clip(np.ceil(centres - stretch), 0, source - taps).astype(np.int64)
    weights = 1 - np.abs(first + np.arange(taps)[:, None] - centres) / stretch
    weights = np.clip(weights, 0, None)
    return Taps(first, (weights / weights.sum(0)).astype(np.float32))


def resample_plane(
    plane: NDArray[np.int16] | NDArray[np.float32], down: Taps | None, across: Taps | None
) -> NDArray[np.float32]:
    """A plane [H, W] brought to another size, rows first; float32."""
    result = plane.astype(np.float32, copy=False)
    if down is not None:
        result = _down(result, down)
    if across is not None:
        # Rows are cheap to gather, columns are not.
        result = np.ascontiguousarray(_down(np.ascontiguousarray(result.T), across).T)
    return result


def _down(plane: NDArray[np.float32], taps: Taps) -> NDArray[np.float32]:
    total = np.zeros((len(taps.first), plane.shape[1]), np.float32)
    # Sums in a fixed order: a matrix product may take another one on another machine.
    for number, weights in enumerate(taps.weights):
        total += plane[taps.first + number] * weights[:, None]
    return total
