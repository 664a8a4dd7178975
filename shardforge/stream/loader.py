"""``ShardLoader``: whole batches, ready for the device."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_all_start_methods
from multiprocessing.context import BaseContext
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Self

import pyarrow.compute as pc
import torch

from shardforge.errors import UsageError
from shardforge.stream.collate import Collate
from shardforge.stream.counts import whole
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.device import DeviceFeed
from shardforge.stream.handover import HandOver, Pass
from shardforge.stream.pipeline import Callback
from shardforge.stream.planning import EpochPlan
from shardforge.stream.processes import WorkerProcesses
from shardforge.stream.running import RunningPass
from shardforge.stream.sample import OnError
from shardforge.stream.select import Weights
from shardforge.stream.share import Share, Tail
from shardforge.stream.slots import PinnedSlots, RecycledSlots, Slots
from shardforge.stream.source import as_chosen
from shardforge.stream.threads import choose_threads, in_order, make_pool


class ShardLoader:
    """Iterates over batches of one split: dicts of uint8 or uint16 [B, H, W, C] images, labels and whatever else is
    asked for.

    One pass is one epoch; the next pass reads the next epoch, unless :meth:`set_epoch` says otherwise. A pass
    that was left before its last batch does not count: the next one reads the same epoch from where it began.
    Threads and worker processes live on between passes, until :meth:`close`, the end of a ``with`` block, or the
    loader's own end.

    Batches are made by threads: decoding and resizing run outside Python's lock. They live in this process
    (``workers=0``, the simplest and fastest) or inside worker processes, so that a training loop that is itself busy
    with Python is not disturbed (``workers=1``); whole batches then come through anonymous shared memory. A batch
    belongs to whoever got it: its memory is used again only when nothing refers to it any more.

    :meth:`state_dict` says which samples were handed over, and :meth:`load_state_dict` goes on after exactly those,
    on any number of ranks and workers and with any batch size.

    Args:
        batch_size: rows per rank.
        threads: that make batches, in each process that does. None: as many as there are processors for it; one in a
            worker process if a transform may draw from the global generators. Transforms are called by several
            threads at once; one that cannot stand that needs ``threads=1``.
        workers: processes that make batches; 0: this one does.
        prefetch: how many batches are made ahead of the one in use, at least 1; with workers, by each of them.
        device: where tensors are put. With a CUDA device, batches lie in page-locked memory and are copied on a
            stream of their own while the one before is in use.
        pin_memory: whether batches lie in page-locked memory without ``device`` too, for copies of your own.
        context: how workers are started: ``fork``, ``spawn``, ``forkserver``, or None for Python's default.
        channels_first: images are given as [B, C, H, W] (a view: in memory channels stay last).
        path, split, shuffle, seed, fields, transform, rank, world_size, tail, on_error, where, weights, as_tuple,
        transform_sample, collate: as for :class:`~shardforge.stream.dataset.ShardDataset`.

    Attributes:
        dataset: the :class:`~shardforge.stream.dataset.ShardDataset` underneath.

    Raises:
        UsageError, StorageError, DamagedError: as ``ShardDataset``.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        split: str = "train",
        batch_size: int = 64,
        *,
        transform: Callback | Sequence[Callback] | None = None,
        threads: int | None = None,
        workers: int = 0,
        prefetch: int = 2,
        device: torch.device | str | None = None,
        pin_memory: bool = False,
        context: Literal["fork", "spawn", "forkserver"] | None = None,
        channels_first: bool = False,
        shuffle: bool | int = True,
        seed: int = 0,
        fields: Sequence[str] | None = None,
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
        batch_size = whole("batch_size", batch_size, least=1)
        workers, prefetch = whole("workers", workers), whole("prefetch", prefetch, least=1)
        methods = get_all_start_methods()
        if context is not None and not isinstance(context, BaseContext) and context not in methods:
            raise UsageError(f"context={context!r}", todo=f"Choose one of {', '.join(methods)}, or None.")
        self.dataset = ShardDataset(
            path,
            split=split,
            shuffle=shuffle,
            seed=seed,
            fields=fields,
            transform=transform,
            batch_size=batch_size,
            rank=rank,
            world_size=world_size,
            tail=tail,
            on_error=on_error,
            where=where,
            weights=weights,
            as_tuple=as_tuple,
            transform_sample=transform_sample,
            collate=collate,
        )
        # Draws from generators that threads share would come in any order.
        wanted = 1 if threads is None and workers and self.dataset.source.maker.uses_globals else threads
        self._threads, self._prefetch, self._channels_first = (
            choose_threads(wanted, workers),
            prefetch,
            channels_first,
        )
        self._feed = DeviceFeed(device)
        pinned = self._feed.copies or pin_memory
        if pinned and not torch.cuda.is_available():
            raise UsageError("pin_memory=True, but torch finds no CUDA device", todo="Leave it out on this machine.")
        self._slots: Slots = PinnedSlots() if pinned and not workers else RecycledSlots()
        self._progress = HandOver()
        self._workers: WorkerProcesses | None = None
        if workers:
            self._workers = WorkerProcesses(self.dataset, self._threads, workers, prefetch, context, pinned)
        self._pool: ThreadPoolExecutor | None = None
        self._running: RunningPass | None = None
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_running": None, "_pool": None}

    def __len__(self) -> int:
        """Batches of this rank in the pass that is running, else in the one that comes next. After a state was loaded
        that is what its epoch has left; the epochs that follow are whole again."""
        unfinished = self._progress.unfinished
        return unfinished.share.steps if unfinished else self.dataset.share(self._progress.start).steps

    @property
    def epoch(self) -> int:
        """The epoch that the next pass reads."""
        return self._progress.epoch

    @property
    def threads(self) -> int:
        """How many threads make batches, in each process that does."""
        return self._threads

    def set_epoch(self, epoch: int) -> None:
        """The next pass reads ``epoch``: from its start, or from where a loaded state left this very epoch."""
        epoch = whole("epoch", epoch)
        start = self._progress.start if epoch == self._progress.epoch else 0
        self.dataset.clock.set(epoch, start)
        self._progress.set(epoch, start)

    def state_dict(self) -> dict[str, Any]:
        """Which samples were handed over: a few integers and texts, the same on every rank."""
        return self.dataset.identity.state(*self._progress.position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Ends the running pass; the next one gives exactly the samples not handed over when ``state`` was saved.

        Raises:
            UsageError: the state belongs to another dataset, split, seed or order; names the field.
        """
        epoch, position = self.dataset.identity.position_of(state, self.dataset.samples)
        self._stop("a state was loaded")
        self.dataset.clock.set(epoch, position)
        self._progress = HandOver(epoch, position)

    def plan(self, epoch: int | None = None) -> EpochPlan:
        """Which samples an epoch gives to which rank at which step; reads no samples.

        Args:
            epoch: default: the one that the next pass reads.
        """
        chosen = self.epoch if epoch is None else whole("epoch", epoch)
        start = self._progress.start if chosen == self._progress.epoch else 0
        return EpochPlan.of(self.dataset.source, self.dataset.share(start), chosen)

    def __iter__(self) -> Iterator[Any]:
        self._stop("another one over this loader has begun")
        self.dataset.clock.set(self._progress.epoch, self._progress.start)
        share = self.dataset.share(self._progress.start)
        batches = self._by_threads(share) if self._workers is None else self._workers.begin()
        running = self._progress.begin(share)
        self._running = RunningPass(self._pass(batches, running), running)
        return self._running

    def _by_threads(self, share: Share) -> Generator[Any, None, None]:
        if self._pool is None:
            self._pool = make_pool(self._threads)
        jobs = self.dataset.jobs(self.dataset.clock.begin(), range(share.steps), self._slots)
        return in_order(jobs, self._pool, self._threads, self._prefetch)

    def _pass(self, batches: Generator[Any, None, None], running: Pass) -> Generator[Any, None, None]:
        fed = self._feed(batches)
        try:
            for content in fed:
                self._progress.hand_over(running)
                yield self._finished(content)
                del content
        finally:
            fed.close()
            batches.close()

    def _finished(self, content: dict[str, Any]) -> Any:
        if self._channels_first and isinstance(content.get("image"), torch.Tensor) and content["image"].ndim == 4:
            content["image"] = content["image"].movedim(-1, 1)
        return as_chosen(content, self.dataset.names, self.dataset.as_tuple)

    def close(self) -> None:
        """Ends threads and worker processes. The loader starts new ones if it is iterated again."""
        try:
            self._stop("the loader was closed")
        finally:
            if self._workers is not None:
                self._workers.close()
            pool, self._pool = self._pool, None
            if pool is not None:
                pool.shutdown()

    def _stop(self, why: str) -> None:
        running, self._running = self._running, None
        if self._process != os.getpid():
            # Forked from the process that iterated: its threads and its pass are not here.
            self._process, self._pool = os.getpid(), None
        elif running is not None:
            running.end(why)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
