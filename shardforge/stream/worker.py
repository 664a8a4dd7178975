"""What a loader's worker process runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

from shardforge.errors import ShardforgeError
from shardforge.stream.epoch import Ticket
from shardforge.stream.slots import SharedSlots
from shardforge.stream.threads import in_order, make_pool

if TYPE_CHECKING:
    from shardforge.stream.dataset import ShardDataset

_AHEAD = 1
"""Batches made ahead inside a worker, beside those that the DataLoader has asked for."""


class InWorker(IterableDataset[Any]):
    """A dataset's batches, made by threads of this worker process, in shared memory.

    Our own errors are handed over as the last element: a DataLoader would bury them in a worker's traceback.
    """

    def __init__(self, dataset: ShardDataset, threads: int) -> None:
        super().__init__()
        self._dataset, self._threads = dataset, threads
        self._pool: ThreadPoolExecutor | None = None

    def __iter__(self) -> Iterator[Any]:
        return _guarded(self._dataset.iterate(self._contents))

    def _contents(self, ticket: Ticket, steps: Sequence[int]) -> Iterator[Any]:
        jobs = self._dataset.jobs(ticket, steps, SharedSlots())
        if self._threads == 1:
            return (job.make_all() for job in jobs)
        if self._pool is None:
            self._pool = make_pool(self._threads)
        return in_order(jobs, self._pool, self._threads, _AHEAD)


def _guarded(content: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from content
    except ShardforgeError as error:
        yield error
