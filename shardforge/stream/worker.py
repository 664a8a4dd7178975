"""What a loader's worker process runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

from shardforge.errors import ShardforgeError
from shardforge.stream.epoch import Ticket
from shardforge.stream.ring import SharedRing
from shardforge.stream.slots import SharedSlots
from shardforge.stream.threads import in_order, make_pool

if TYPE_CHECKING:
    from shardforge.stream.dataset import ShardDataset

_AHEAD = 1
"""Batches made ahead inside a worker, beside those that the DataLoader has asked for."""


class InWorker(IterableDataset[Any]):
    """A dataset's batches, made by threads of this worker process, in shared memory. Each comes with the names of the
    fields whose memory is to be returned; see :class:`~shardforge.stream.ring.Returns`.

    Our own errors are handed over as the last element: a DataLoader would bury them in a worker's traceback.
    """

    def __init__(self, dataset: ShardDataset, threads: int, returned: bool) -> None:
        """``returned``: whether the training process returns the memory of batches."""
        super().__init__()
        self._dataset, self._threads, self._returned = dataset, threads, returned
        self._pool: ThreadPoolExecutor | None = None

    def __iter__(self) -> Iterator[Any]:
        return _guarded(self._dataset.iterate(self._contents))

    def _contents(self, ticket: Ticket, steps: Sequence[int]) -> Iterator[Any]:
        ring = SharedRing() if self._returned else None
        jobs = self._dataset.jobs(ticket, steps, SharedSlots() if ring is None else ring)
        if self._threads > 1 and self._pool is None:
            self._pool = make_pool(self._threads)
        if self._pool is None:
            made = (job.make_all() for job in jobs)
        else:
            made = in_order(jobs, self._pool, self._threads, _AHEAD)
        return ((content, [] if ring is None else ring.lent(content)) for content in made)


def _guarded(content: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from content
    except ShardforgeError as error:
        yield error
