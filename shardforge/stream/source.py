"""Order, choice and samples of one split put together: which batch or sample comes at which step."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from shardforge.errors import DamagedError, UsageError
from shardforge.shards.index import Ids
from shardforge.stream.batches import BatchJob, Content
from shardforge.stream.collate import Collate, to_torch
from shardforge.stream.fields import VALID
from shardforge.stream.gathering import Gathering
from shardforge.stream.order import SampleOrder
from shardforge.stream.reader import Split
from shardforge.stream.sample import Rows, Sample, SampleMaker
from shardforge.stream.share import Share
from shardforge.stream.slots import Slots

_AHEAD = 64
"""Samples whose places and extents are computed at once when they are given singly."""
_TOGETHER = 1024
"""The same for batches, where a sample's fields take a few numbers each before they are decoded."""


class Source:
    """What a reader reads, apart from who reads which share of it. Pickles.

    Args:
        split: where from.
        maker: of its samples.
        ids: numbers of the samples that take part, ascending, or None for all.
        weights: of those samples, or None.
        seed, shuffle: of the order.
        with_valid: whether rows are to be marked as valid or missing.
        collate: makes batches, or None.
    """

    def __init__(
        self,
        split: Split,
        maker: SampleMaker,
        ids: Ids | None,
        weights: npt.NDArray[np.float64] | None,
        seed: int,
        shuffle: bool | int,
        with_valid: bool,
        collate: Collate | None,
    ) -> None:
        self.split, self.maker, self.ids, self.weights = split, maker, ids, weights
        self._seed, self._shuffle, self._with_valid, self._collate = seed, shuffle, with_valid, collate
        self._blank: Sample | None = None

    def __len__(self) -> int:
        """Places in an epoch."""
        return len(self.split) if self.ids is None else len(self.ids)

    def order(self, epoch: int) -> SampleOrder:
        """The order of one epoch."""
        counts: Sequence[int] = self.split.counts
        if self.ids is not None:
            counts = np.bincount(self.split.index.places(self.ids)[0], minlength=len(counts)).tolist()
        fingerprint = self.split.manifest.fingerprint
        return SampleOrder(fingerprint, self._seed, epoch, counts, self._shuffle, weights=self.weights)

    def samples_at(self, order: SampleOrder, places: Ids) -> Ids:
        """Numbers in the split of the samples at ``places``; −1 stays −1."""
        ids = np.full(places.shape, -1, np.int64)
        real = places >= 0
        ids[real] = order.at(places[real])
        if self.ids is not None:
            ids[real] = self.ids[ids[real]]
        return ids

    def jobs(self, epoch: int, share: Share, steps: Sequence[int], slots: Slots) -> Iterator[BatchJob]:
        """The batches of these steps, to be made."""
        order = self.order(epoch)
        light = all(field.light for field in self.maker.fields.values())
        # Fields that can be damaged are not light: batches without the damage are to be given.
        together = max(1, _TOGETHER // share.batch) if light else 1
        for start in range(0, len(steps), together):
            places = share.rows(np.asarray(steps[start : start + together], np.int64)).ravel()
            gathering = Gathering(partial(self._gathered, order, places, epoch))
            for first in range(0, len(places), share.batch):
                yield BatchJob(
                    self.maker,
                    partial(gathering.part, first, first + share.batch),
                    share.batch,
                    blank=self._missing,
                    slots=slots,
                    collate=self._collate,
                    with_valid=self._with_valid,
                )

    def singles(self, epoch: int, share: Share, steps: Sequence[int]) -> Iterator[Content]:
        """The samples of these steps of a share whose batches hold one each."""
        order, names = self.order(epoch), tuple(self.maker.fields)
        for start in range(0, len(steps), _AHEAD):
            places = share.rows(np.asarray(steps[start : start + _AHEAD], np.int64)).ravel()
            for rows, row in self._singly(order, places, epoch):
                sample = self.maker.make(rows, row, names)
                complete = copy.deepcopy(self._missing()) if sample is None else sample
                valid = {VALID: np.bool_(sample is not None)} if self._with_valid else {}
                yield {name: to_torch(value) for name, value in {**complete, **valid}.items()}

    def _singly(self, order: SampleOrder, places: Ids, epoch: int) -> Iterator[tuple[Rows, int]]:
        """Gathers the rows of these places at once, or one by one if that raises: those before the damage are to be
        given."""
        try:
            parts = iter([self._gathered(order, places, epoch)])
        except DamagedError:
            parts = (self._gathered(order, places[i : i + 1], epoch) for i in range(len(places)))
        for rows in parts:
            for row in range(len(rows.places)):
                yield rows, row

    def _gathered(self, order: SampleOrder, places: Ids, epoch: int) -> Rows:
        return self.maker.gather(self.samples_at(order, places), places, epoch)

    def _missing(self) -> Sample:
        if self._blank is None:
            self._blank = self.maker.blank(np.arange(len(self.split)) if self.ids is None else self.ids)
        return self._blank


def as_chosen(content: Content, names: Sequence[str], as_tuple: bool) -> Any:
    """The content as it is, or as a tuple of the fields ``names``."""
    if not as_tuple:
        return content
    missing = [name for name in names if name not in content]
    if missing:
        raise UsageError(f"transform_sample left out {missing[0]!r}, which is one of the fields")
    return tuple(content[name] for name in names)
