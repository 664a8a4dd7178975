"""Which sample stands at which place of an epoch: a pure function of fingerprint, seed and epoch.

The samples of every shard, in file order, are cut into slices of :data:`SLICE`. The slices are permuted; end to end
they form a sequence of N places, which is permuted once more inside windows of W places: a shuffle buffer that needs
no memory, no warm-up, and can be entered anywhere. W = N is a perfect global shuffle. Memory is O(N / SLICE).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError
from shardforge.stream.permute import Words, key_of, permute, uniforms, words

Ids = npt.NDArray[np.int64]

ORDER_VERSION = 1
"""Changes whenever any order changes; part of every key, so that an old state cannot silently mean a new order."""
SLICE = 64


class SampleOrder:
    """The order of one epoch.

    Args:
        fingerprint: of the dataset.
        seed, epoch: non-negative.
        counts: samples per shard, in shard order; samples are numbered 0 … N-1 through all shards.
        shuffle: True for a global shuffle, an int for windows of so many places, False for file order.
        weights: float64 [N], non-negative: draws with replacement in proportion to them (N places as before).
            Memory is O(N) then.

    Raises:
        UsageError: a window below 1, weights without a full shuffle, unusable weights.
    """

    def __init__(
        self,
        fingerprint: str,
        seed: int,
        epoch: int,
        counts: Sequence[int],
        shuffle: bool | int,
        *,
        weights: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self._length = int(sum(counts))
        self._base = ("order", ORDER_VERSION, fingerprint, seed, epoch)
        self._cumulative = None if weights is None else _cumulative(weights, self._length, shuffle)
        if shuffle is False or self._cumulative is not None:
            self._window = 0
        elif shuffle is True:
            self._window = max(1, self._length)
        elif shuffle >= 1:
            self._window = min(int(shuffle), max(1, self._length))
        else:
            raise UsageError(f"shuffle={shuffle}: a window has at least 1 place")
        self._counts = counts

    def __len__(self) -> int:
        return self._length

    def at(self, places: Ids) -> Ids:
        """Numbers of the samples at ``places`` (int64 [n], each in 0 … N-1), int64 [n]."""
        if self._cumulative is not None:
            drawn = uniforms(key_of(*self._base, "draws"), places.astype(np.uint64)) * self._cumulative[-1]
            # Rounding may lift the last draws to the very total, which belongs to nobody.
            last = np.searchsorted(self._cumulative, self._cumulative[-1], side="left")
            return np.asarray(np.minimum(np.searchsorted(self._cumulative, drawn, side="right"), last), np.int64)
        if not self._window:
            return np.array(places, np.int64)
        inside = self._inside_windows(places.astype(np.uint64))
        starts, firsts = self._slices
        number = np.searchsorted(starts, inside, side="right") - 1
        return firsts[number] + (inside - starts[number])

    @cached_property
    def _slices(self) -> tuple[Ids, Ids]:
        """Of every slice, permuted: its first place in the sequence, and its first sample."""
        counts = np.asarray(self._counts, np.int64)
        slices = -(-counts // SLICE)
        # Slice i of a shard begins i·SLICE samples after the shard's first and ends with the shard at the latest.
        inside = np.arange(slices.sum()) - np.repeat(np.cumsum(slices) - slices, slices)
        first = np.repeat(np.cumsum(counts) - counts, slices) + inside * SLICE
        length = np.minimum(SLICE, np.repeat(counts, slices) - inside * SLICE)
        if len(first):
            key = np.array([key_of(*self._base, "slices")])
            permuted = permute(np.arange(len(first), dtype=np.uint64), len(first), key).astype(np.int64)
            first, length = first[permuted], length[permuted]
        return np.cumsum(length) - length, first

    def _inside_windows(self, places: Words) -> Ids:
        window, inside = np.divmod(places, np.uint64(self._window))
        keys = words(key_of(*self._base, "windows"), window)
        out = np.empty(len(places), np.uint64)
        whole, rest = divmod(self._length, self._window)
        for mine, size in ((window < whole, self._window), (window >= whole, rest)):
            if mine.any():
                out[mine] = permute(inside[mine], size, keys[mine])
        return (window * np.uint64(self._window) + out).astype(np.int64)


def _cumulative(weights: npt.NDArray[np.float64], length: int, shuffle: bool | int) -> npt.NDArray[np.float64]:
    if shuffle is not True:
        raise UsageError("weights draw at random, with replacement", todo="Use them with shuffle=True.")
    if weights.shape != (length,):
        raise UsageError(f"weights of shape {weights.shape} for {length} samples")
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise UsageError("weights are finite, not negative, and not all zero")
    return np.cumsum(weights, dtype=np.float64)
