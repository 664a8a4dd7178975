"""What a loader's worker process runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset

from shardforge.errors import ShardforgeError
from shardforge.stream.epoch import Ticket
from shardforge.stream.ring import SharedRing
from shardforge.stream.shared import SharedWords
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

    Args:
        dataset: whose.
        threads: how many.
        lost: how often so far batches, and with them their return, were lost; word 0 of a row that the training
            process writes. None: it never returns the memory of batches.
    """

    def __init__(self, dataset: ShardDataset, threads: int, lost: SharedWords | None) -> None:
        super().__init__()
        self._dataset, self._threads, self._lost = dataset, threads, lost
        self._ring: tuple[int, SharedRing] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def __iter__(self) -> Iterator[Any]:
        return _guarded(self._dataset.iterate(self._contents))

    def _contents(self, ticket: Ticket, steps: Sequence[int]) -> Iterator[Any]:
        ring = self._usable_ring()
        jobs = self._dataset.jobs(ticket, steps, SharedSlots() if ring is None else ring)
        if self._threads > 1 and self._pool is None:
            self._pool = make_pool(self._threads)
        if self._pool is None:
            made = (job.make_all() for job in jobs)
        else:
            made = in_order(jobs, self._pool, self._threads, _AHEAD)
        return ((content, [] if ring is None else ring.lent(content)) for content in made)

    def _usable_ring(self) -> SharedRing | None:
        """The ring of the pass before, or a new one if some of its memory will never come back."""
        if self._lost is None:
            return None
        lost = int(self._lost.row()[0])
        if self._ring is None or self._ring[0] != lost:
            self._ring = lost, SharedRing()
        return self._ring[1]


def _guarded(content: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from content
    except ShardforgeError as error:
        yield error
