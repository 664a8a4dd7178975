"""``ShardDataset``: the indexed reader as a torch ``IterableDataset``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.compute as pc
from torch.utils.data import IterableDataset, get_worker_info

from shardforge.errors import UsageError
from shardforge.shards.index import Ids
from shardforge.shards.manifest import Manifest
from shardforge.stream.collate import batch, to_torch
from shardforge.stream.epoch import EpochClock, Ticket, iteration_of
from shardforge.stream.fields import VALID, choose_fields
from shardforge.stream.order import SampleOrder
from shardforge.stream.ranks import Ranks
from shardforge.stream.reader import choose_split
from shardforge.stream.sample import Callback, OnError, Sample, SampleMaker, steps_of
from shardforge.stream.select import Weights, choose_weights, select
from shardforge.stream.share import Share, Tail
from shardforge.stream.tally import ErrorTally

_AHEAD = 64
"""Samples whose places and extents are computed at once when they are given singly."""


class ShardDataset(IterableDataset[Any]):
    """Samples or batches of one split, each exactly once per epoch over all ranks and workers.

    The order is a pure function of the dataset's fingerprint, ``seed`` and the epoch; world size, workers and time
    have no part in it. Every rank does the same number of steps. The next iteration after one that came to its end
    reads the next epoch; :meth:`set_epoch` overrides, and reaches persistent workers.

    Args:
        path: the dataset's folder.
        split: which split.
        shuffle: True: a global shuffle per epoch; an int: within windows of so many samples; False: as stored.
        seed: of the order and of all transforms.
        fields: names of the fields to give: ``image``, ``label``, ``key``, any stored member (``txt``, ``json``,
            ``mask``), any parquet column, and ``valid`` to choose its place in a tuple. Default: image, and label
            where the dataset has one.
        transform: one callable or a list, applied to the image, NumPy uint8 (uint16 in a dataset of that
            depth) [H, W, C] in RGB order. One with a
            parameter ``generator`` is given a ``numpy.random.Generator`` that depends on (seed, epoch, place in the
            order) alone. For one that draws from the global generators of Python, NumPy or torch, those are seeded
            likewise in worker processes; in the training process they are left alone, and draws not reproducible.
        batch_size: rows per rank and step. Given, whole batches are yielded, for ``DataLoader(batch_size=None)``:
            the same ones for any number of workers. None: samples are yielded, one by one.
        rank, world_size: found when needed unless given (torch.distributed, then RANK and WORLD_SIZE, else 0 of 1).
        tail: what happens to the last samples, fewer than a global batch (without ``batch_size``: than one per rank).
            ``mask``: one last step in which missing rows are zeros with ``valid`` False, ``key`` "" and ``label``
            −100; ``drop``: left out, counted by :attr:`dropped`. Default: drop when shuffling, mask otherwise.
        on_error: what happens to a sample that cannot be read. ``raise``, or ``mask``: it becomes a missing row,
            counted by :attr:`masked_errors` and logged once per cause. Errors in transforms are always raised.
        where: a ``pyarrow.compute`` expression over parquet columns: only samples for which it is true.
        weights: draws with replacement in proportion to these: one number per sample of the split, a parquet column,
            or ``"balanced"`` (all classes equally often). An epoch keeps its length.
        as_tuple: give tuples in the order of ``fields`` (then ``valid``, where there is one) instead of dicts.
        transform_sample: one callable or a list, applied after ``transform`` to the whole sample, a dict of NumPy and
            Python values; returns a mapping. ``generator`` as above.

    Attributes:
        names: the fields in the order of a tuple.

    Yields:
        Dicts by field. ``image``: uint8 or uint16 [H, W, C] (or what the transform makes of it); ``label``: int64 for
        classes, float32 [K] of zeros and ones for several, float32 (scalar or [D]) for numbers; numbers are tensors,
        texts strings. Batches have one more dimension in front, and lists of texts. With ``tail="mask"`` or
        ``on_error="mask"`` also ``valid`` (bool).

    Raises:
        UsageError: an argument makes no sense for this dataset.
        StorageError, DamagedError: the dataset cannot be opened, or a sample cannot be read.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        split: str = "train",
        shuffle: bool | int = True,
        seed: int = 0,
        fields: Sequence[str] | None = None,
        transform: Callback | Sequence[Callback] | None = None,
        batch_size: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        tail: Tail | None = None,
        on_error: OnError = "raise",
        where: pc.Expression | None = None,
        weights: Weights = None,
        as_tuple: bool = False,
        transform_sample: Callback | Sequence[Callback] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise UsageError(f"seed={seed!r}: a whole number, not negative")
        if batch_size is not None and not isinstance(batch_size, int | np.integer):
            raise UsageError(f"batch_size={batch_size!r}: a whole number")
        root = Path(path)
        self._split = choose_split(root, Manifest.read(root), split)
        self._shuffle: bool | int = bool(shuffle) if isinstance(shuffle, bool | np.bool_) else int(shuffle)
        self._seed, self._batch_size, self.as_tuple = int(seed), batch_size, as_tuple
        self._tail: Tail = tail if tail is not None else ("mask" if self._shuffle is False else "drop")
        self._ranks = Ranks.of(rank, world_size)
        self._ids = select(self._split, where)
        self._weights = choose_weights(self._split, weights, self._ids)
        names = fields if fields is None or isinstance(fields, str) else tuple(fields)
        if isinstance(names, tuple) and len(set(names)) != len(names):
            raise UsageError(f"fields={names!r}: a field is named twice")
        chosen = choose_fields(self._split, names)
        self._with_valid = self._tail == "mask" or on_error == "mask" or VALID in (names or ())
        self.names = tuple(dict.fromkeys([*(names or chosen), *([VALID] if self._with_valid else [])]))
        self._tally, self._clock = ErrorTally(), EpochClock()
        steps, sample_steps = steps_of(transform), steps_of(transform_sample)
        self._maker = SampleMaker(chosen, steps, sample_steps, self._seed, on_error, self._tally)
        self._blank: Sample | None = None
        self._begun = 0
        # What is wrong with the order or the share is said here, not in the first epoch.
        self._order(0)
        self._share()

    @property
    def manifest(self) -> Manifest:
        """What the dataset's ``dataset.json`` says."""
        return self._split.manifest

    @property
    def classes(self) -> dict[str, int]:
        """Class name → id; empty unless labels are classes."""
        return dict(self.manifest.classes)

    @property
    def samples(self) -> int:
        """Places in an epoch over all ranks: the samples of the split for which ``where`` is true."""
        return len(self._split) if self._ids is None else len(self._ids)

    @property
    def dropped(self) -> int:
        """Samples per epoch that no rank gets (``tail="drop"``)."""
        return self._share().dropped

    @property
    def masked_errors(self) -> int:
        """Samples so far that could not be read and were masked (``on_error="mask"``), over all workers."""
        return self._tally.total

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration reads."""
        return self._clock.begin().epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads ``epoch`` (0 … 2^28 - 1), in all workers."""
        self._clock.set(epoch)

    def __len__(self) -> int:
        """Steps per rank and epoch: batches with ``batch_size``, else samples."""
        return self._share().steps

    def __iter__(self) -> Iterator[Any]:
        self._begun += 1
        worker = get_worker_info()
        if worker is None:
            return self._epoch(self._clock.begin(), 0, 1)
        # OpenCV's own threads would only fight with the other workers.
        cv2.setNumThreads(0)
        iteration = iteration_of(worker.seed - worker.id, self._begun)
        return self._epoch(self._clock.begin(iteration), worker.id, worker.num_workers)

    def _share(self) -> Share:
        rank, world = self._ranks.find()
        return Share(self.samples, 1 if self._batch_size is None else self._batch_size, rank, world, self._tail)

    def _order(self, epoch: int) -> SampleOrder:
        counts: Sequence[int] = self._split.counts
        if self._ids is not None:
            counts = np.bincount(self._split.index.places(self._ids)[0], minlength=len(counts)).tolist()
        return SampleOrder(self.manifest.fingerprint, self._seed, epoch, counts, self._shuffle, weights=self._weights)

    def _epoch(self, ticket: Ticket, worker: int, workers: int) -> Iterator[Any]:
        share, order = self._share(), self._order(ticket.epoch)
        steps = np.asarray(share.steps_of(worker, workers), np.int64)
        at_once = 1 if self._batch_size else _AHEAD
        for start in range(0, len(steps), at_once):
            places = share.rows(steps[start : start + at_once]).ravel()
            rows = self._maker.rows(self._samples_at(order, places), places, ticket.epoch)
            if self._batch_size:
                yield self._as_chosen(batch([self._complete(row) for row in rows]))
            else:
                for row in rows:
                    complete = self._complete(row)
                    yield self._as_chosen({name: to_torch(value) for name, value in complete.items()})
        if worker == 0:
            self._clock.end(ticket)

    def _samples_at(self, order: SampleOrder, places: Ids) -> Ids:
        """Numbers in the split of the samples at ``places``; −1 stays −1."""
        ids = np.full(len(places), -1, np.int64)
        real = places >= 0
        ids[real] = order.at(places[real])
        if self._ids is not None:
            ids[real] = self._ids[ids[real]]
        return ids

    def _complete(self, row: Sample | None) -> Sample:
        valid = {VALID: np.bool_(row is not None)} if self._with_valid else {}
        if row is None:
            if self._blank is None:
                self._blank = self._maker.blank(np.arange(len(self._split)) if self._ids is None else self._ids)
            row = self._blank
        return {**row, **valid}

    def _as_chosen(self, content: dict[str, Any]) -> Any:
        if not self.as_tuple:
            return content
        missing = [name for name in self.names if name not in content]
        if missing:
            raise UsageError(f"transform_sample left out {missing[0]!r}, which is one of the fields")
        return tuple(content[name] for name in self.names)
