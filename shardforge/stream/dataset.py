"""``ShardDataset``: the indexed reader as a torch ``IterableDataset``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import cv2
import numpy as np
import pyarrow.compute as pc
from torch.utils.data import IterableDataset, get_worker_info

from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from shardforge.stream.batches import BatchJob
from shardforge.stream.collate import Collate
from shardforge.stream.consumed import current_pass
from shardforge.stream.counts import whole
from shardforge.stream.epoch import EpochClock, Ticket, iteration_of
from shardforge.stream.fields import VALID, choose_fields
from shardforge.stream.iteration import Contents, EpochIterator
from shardforge.stream.pipeline import Callback, steps_of
from shardforge.stream.planning import EpochPlan
from shardforge.stream.ranks import Ranks
from shardforge.stream.reader import choose_split, local_folder
from shardforge.stream.sample import OnError, SampleMaker
from shardforge.stream.select import Weights, choose_weights, select
from shardforge.stream.share import Share, Tail
from shardforge.stream.slots import FreshSlots, SharedSlots, Slots
from shardforge.stream.source import Source, as_chosen
from shardforge.stream.state import Identity, digest
from shardforge.stream.tally import ErrorTally
from shardforge.stream.watch import end_with_parent


class ShardDataset(IterableDataset[Any]):
    """Samples or batches of one split, each exactly once per epoch over all ranks and workers.

    The order is a pure function of the dataset's fingerprint, ``seed`` and the epoch; world size, workers and time
    have no part in it. Every rank does the same number of steps. The next iteration after one that came to its end
    reads the next epoch; :meth:`set_epoch` overrides, and reaches persistent workers. Of a pass left early, a
    DataLoader's workers cannot know how much was handed over, so there every pass that was begun counts, and the next
    one reads the next epoch, however many workers there are and however far they read ahead; without workers it reads
    the same one again. Call ``set_epoch`` before each pass that may be left early. :meth:`state_dict` says how far
    training has got, and :meth:`load_state_dict` goes on from there, on any number of ranks and workers and with any
    batch size. In torchdata's ``StatefulDataLoader`` the state is the loader's, and fits the same numbers.

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
            counted by :attr:`masked_errors`; every process that meets it logs it, once per cause, 20 causes at most.
            Errors in transforms are always raised, with a note that names the sample.
        where: a ``pyarrow.compute`` expression over parquet columns: only samples for which it is true.
        weights: draws with replacement in proportion to these: one number per sample of the split, a parquet column,
            or ``"balanced"`` (all classes equally often). An epoch keeps its length.
        as_tuple: give tuples in the order of ``fields`` (then ``valid``, where there is one) instead of dicts.
        collate: makes batches of complete rows (dicts of NumPy and Python values) instead, say
            :class:`~shardforge.transforms.PadCollate` for images of different sizes. Needs ``batch_size``.
        transform_sample: one callable or a list, applied after ``transform`` to the whole sample, a dict of NumPy and
            Python values; returns a mapping. ``generator`` as above.

    Attributes:
        names: the fields in the order of a tuple.
        batch_size: as given.
        identity: what the order depends on, as states have it.
        source: what is read, apart from who reads which share of it.
        clock: the epoch that comes next.

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
        collate: Collate | None = None,
    ) -> None:
        super().__init__()
        seed = whole("seed", seed)
        if collate is not None and (batch_size is None or not callable(collate)):
            raise UsageError("collate is a callable that makes batches, and needs batch_size")
        root = local_folder(path)
        split_read = choose_split(root, Manifest.read(root), split)
        shuffle = bool(shuffle) if isinstance(shuffle, bool | np.bool_) else whole("shuffle", shuffle, least=None)
        self.batch_size, self.as_tuple = None if batch_size is None else whole("batch_size", batch_size), as_tuple
        self._tail: Tail = tail if tail is not None else ("mask" if shuffle is False else "drop")
        self._ranks = Ranks.of(rank, world_size)
        ids = select(split_read, where)
        weight = choose_weights(split_read, weights, ids)
        names = fields if fields is None or isinstance(fields, str) else tuple(fields)
        if isinstance(names, tuple) and len(set(names)) != len(names):
            raise UsageError(f"fields={names!r}: a field is named twice")
        chosen = choose_fields(split_read, names)
        with_valid = self._tail == "mask" or on_error == "mask" or VALID in (names or ())
        self.names = tuple(dict.fromkeys([*(names or chosen), *([VALID] if with_valid else [])]))
        self._tally, self.clock = ErrorTally(), EpochClock()
        steps, sample_steps, key = steps_of(transform), steps_of(transform_sample), split_read.key
        maker = SampleMaker(chosen, steps, sample_steps, seed, on_error, self._tally, key)
        self.source = Source(split_read, maker, ids, weight, seed, shuffle, with_valid, collate)
        self.identity = Identity(
            fingerprint=split_read.manifest.fingerprint,
            split=split,
            seed=seed,
            shuffle=-1 if shuffle is True else int(shuffle),
            where=digest(ids),
            weights=digest(weight),
        )
        self._begun = 0
        # The worker process that is: a copy that came from elsewhere is in another.
        self._prepared = 0
        self._running: EpochIterator | None = None
        # What is wrong with the order or the share is said here, not in the first epoch.
        self.source.order(0)
        self.share(0)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None}

    @property
    def manifest(self) -> Manifest:
        """What the dataset's ``dataset.json`` says."""
        return self.source.split.manifest

    @property
    def classes(self) -> dict[str, int]:
        """Class name → id; empty unless labels are classes."""
        return dict(self.manifest.classes)

    @property
    def samples(self) -> int:
        """Places in an epoch over all ranks: the samples of the split for which ``where`` is true."""
        return len(self.source)

    @property
    def dropped(self) -> int:
        """Samples that no rank gets of the epoch that comes next (``tail="drop"``)."""
        return self.share(self.clock.begin().start).dropped

    @property
    def masked_errors(self) -> int:
        """Samples so far that could not be read and were masked (``on_error="mask"``), over all workers."""
        return self._tally.total

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration reads."""
        return self.clock.begin().epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration reads ``epoch`` (0 … 2^28 - 1), in all workers: from its first place, or from where a
        loaded state left this very epoch."""
        ticket, epoch = self.clock.begin(), whole("epoch", epoch)
        self.clock.set(epoch, ticket.start if ticket.epoch == epoch else 0)

    def state_dict(self, consumed: int | None = None, epoch: int | None = None) -> dict[str, Any]:
        """How far training has got: a few integers and texts, the same on every rank.

        Args:
            consumed: how many batches (without ``batch_size``: samples) this rank's training loop has got of the
                epoch. A DataLoader with workers reads ahead, so only the loop knows; else it may be left out.
            epoch: which epoch that is; needed only where it cannot be told, and the error says so.

        Raises:
            UsageError: it cannot be told how far training has got, or not that far.
        """
        if get_worker_info() is not None:
            # The iterator's state says everything; see EpochIterator.
            return {}
        consumed = None if consumed is None else whole("consumed", consumed)
        epoch = None if epoch is None else whole("epoch", epoch)
        ticket, given = current_pass(self.clock, self._running, consumed, epoch)
        steps = given if consumed is None else consumed
        share = self.share(ticket.start)
        if not 0 <= steps <= share.steps:
            raise UsageError(f"consumed={steps}: epoch {ticket.epoch} has {share.steps} steps from where it began")
        if steps == share.steps:
            return self.identity.state(ticket.epoch + 1, 0)
        return self.identity.state(ticket.epoch, share.position(steps))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration goes on where ``state`` was saved: with exactly the samples not handed over until then.
        The epochs after that are whole again.

        Raises:
            UsageError: the state belongs to another dataset, split, seed or order; names the field.
        """
        if get_worker_info() is not None and not state:
            return
        epoch, position = self.identity.position_of(state, self.samples)
        self.clock.set(epoch, position)
        self._running = None

    def plan(self, epoch: int | None = None) -> EpochPlan:
        """Which samples an epoch gives to which rank at which step; reads no samples.

        Args:
            epoch: default: the one that comes next.
        """
        chosen = self.epoch if epoch is None else whole("epoch", epoch)
        return EpochPlan.of(self.source, self.share(self.clock.start_of(chosen)), chosen)

    def __len__(self) -> int:
        """Steps of this rank in the epoch that comes next: batches with ``batch_size``, else samples. After a state
        was loaded that is what the epoch has left."""
        return self.share(self.clock.begin().start).steps

    def __iter__(self) -> EpochIterator:
        return self.iterate(self.contents)

    def iterate(self, contents: Contents) -> EpochIterator:
        """Begins a pass, whose steps ``contents`` gives."""
        self._begun += 1
        worker = get_worker_info()
        if worker is None:
            self._running = EpochIterator(self, contents, self.clock.begin(), 0, 1)
            return self._running
        if self._prepared != os.getpid():
            self._prepared = os.getpid()
            # OpenCV's own threads would only fight with the other workers.
            cv2.setNumThreads(0)
            end_with_parent()
        ticket = self.clock.begin(iteration_of(worker.seed - worker.id, self._begun))
        if worker.id == 0:
            self.clock.note_begun(ticket)
        return EpochIterator(self, contents, ticket, worker.id, worker.num_workers)

    def share(self, start: int) -> Share:
        """This rank's share of an epoch from place ``start`` on."""
        rank, world = self._ranks.find()
        return Share(self.samples, 1 if self.batch_size is None else self.batch_size, rank, world, self._tail, start)

    def jobs(self, ticket: Ticket, steps: Sequence[int], slots: Slots) -> Iterator[BatchJob]:
        """The batches of some steps of a pass, to be made."""
        return self.source.jobs(ticket.epoch, self.share(ticket.start), steps, slots)

    def contents(self, ticket: Ticket, steps: Sequence[int]) -> Iterator[Any]:
        """What some steps of a pass give, made by this thread."""
        if self.batch_size is None:
            made = self.source.singles(ticket.epoch, self.share(ticket.start), steps)
        else:
            slots = FreshSlots() if get_worker_info() is None else SharedSlots()
            made = (job.make_all() for job in self.jobs(ticket, steps, slots))
        return (as_chosen(content, self.names, self.as_tuple) for content in made)
