"""Who gets which sample at which step of an epoch, without reading any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardforge.shards.index import Ids
from shardforge.stream.order import SampleOrder
from shardforge.stream.share import Share
from shardforge.stream.source import Source


@dataclass(frozen=True)
class EpochPlan:
    """What an epoch gives to whom. Computes what it is asked for, step by step.

    Attributes:
        epoch: which.
        start: the first place that is given: not 0 only in a resumed epoch.
        steps: of every rank.
        world_size, batch_size: ranks, and rows per rank and step.
        dropped: samples that nobody gets.
    """

    epoch: int
    start: int
    steps: int
    world_size: int
    batch_size: int
    dropped: int
    _share: Share
    _source: Source
    _order: SampleOrder

    @classmethod
    def of(cls, source: Source, share: Share, epoch: int) -> EpochPlan:
        """The plan of an epoch of which this is one rank's share."""
        order = source.order(epoch)
        return cls(epoch, share.start, share.steps, share.world, share.batch, share.dropped, share, source, order)

    def samples(self, step: int, rank: int | None = None) -> Ids:
        """Numbers in the split of the samples of one step; −1 where a row is missing.

        Args:
            step: 0 … :attr:`steps` - 1.
            rank: whose; None: of every rank.

        Returns:
            int64 [batch_size], or [world_size, batch_size] of every rank.
        """
        if not 0 <= step < self.steps:
            raise IndexError(f"step {step} of {self.steps}")
        rows = np.arange(self.batch_size)[None, :] * self.world_size + np.arange(self.world_size)[:, None]
        places = self.start + step * self.batch_size * self.world_size + rows
        places = np.where(places < self._share.places, places, -1)
        return self._source.samples_at(self._order, places if rank is None else places[rank])

    def keys(self, step: int, rank: int) -> list[str]:
        """Keys of the samples of one step of one rank; "" where a row is missing."""
        ids = self.samples(step, rank)
        found = self._source.split.index.keys(np.maximum(ids, 0))
        return [key if number >= 0 else "" for key, number in zip(found, ids.tolist(), strict=True)]
