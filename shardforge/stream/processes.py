"""A loader's worker processes, as the training process sees them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator
from multiprocessing.connection import wait
from typing import Any
from weakref import WeakSet

from torch.utils.data import DataLoader

from shardforge.errors import ShardforgeError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.deaths import Death, explain_deaths
from shardforge.stream.ring import Returns
from shardforge.stream.shared import SharedWords
from shardforge.stream.worker import InWorker

_PATIENCE = 2.0
"""Seconds that a process may take to be gone whose connections are."""


class WorkerProcesses:
    """Starts workers for the first pass and keeps them for the next ones.

    A DataLoader has no public way to end its workers: it does so when its iterator is collected, which a traceback
    that somebody keeps puts off. So its iterator is told here, by the method that it would call then.

    Args:
        dataset: what they read.
        threads: in each.
        workers: how many.
        prefetch: batches that each makes ahead.
        context: how they are started, or None for Python's default.
        pinned: whether batches go to page-locked memory, from which a GPU copies.
    """

    def __init__(
        self, dataset: ShardDataset, threads: int, workers: int, prefetch: int, context: str | None, pinned: bool
    ) -> None:
        self._dataset, self._threads, self._workers = dataset, threads, workers
        self._prefetch, self._context, self._pinned = prefetch, context, pinned
        self._batches: DataLoader[Any] | None = None
        self._returns, self._complete = Returns(workers), True
        self._lost = SharedWords(1)
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_batches": None, "_returns": Returns(self._workers), "_complete": True}

    def begin(self) -> Generator[Any, None, None]:
        """Begins a pass, here and now, over what the dataset's clock says is next.

        Raises:
            ShardforgeError: a worker process died; the next pass starts new ones. Else whatever a worker met.
        """
        if self._process != os.getpid() or self._dead(0):
            self.close()
        if self._batches is None:
            _with_workers.add(self)
            self._batches = DataLoader(
                InWorker(self._dataset, self._threads, None if self._pinned else self._lost),
                batch_size=None,
                num_workers=self._workers,
                prefetch_factor=self._prefetch,
                collate_fn=_unchanged,
                multiprocessing_context=self._context,
                persistent_workers=True,
                pin_memory=self._pinned,
            )
        if not self._complete:
            # Batches on their way are thrown away unseen.
            self._lost.row()[0] += 1
            self._returns = Returns(self._workers)
        self._complete = False
        with self._explained():
            return self._received(iter(self._batches))

    def _received(self, batches: Iterator[Any]) -> Generator[Any, None, None]:
        while True:
            with self._explained():
                batch = next(batches, None)
            if batch is None:
                self._complete = True
                return
            if isinstance(batch, ShardforgeError):
                raise batch
            content = self._returns(*batch)
            del batch
            yield content
            del content

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Says so if what fails here does because a worker died. Whatever fails, the next pass starts new workers."""
        try:
            yield
        except (RuntimeError, ConnectionError, EOFError, FileNotFoundError) as error:
            dead = self._dead(0 if isinstance(error, RuntimeError) else _PATIENCE)
            self.close()
            if not dead:
                raise
            split = self._dataset.source.split
            raise explain_deaths(dead, split.files, split.root) from error
        except BaseException:
            # Wherever that struck, by Ctrl-C say, the DataLoader may have lost count of what its workers owe.
            self.close()
            raise

    def _iterator(self) -> Any:
        return None if self._batches is None else self._batches._iterator

    def _dead(self, patience: float) -> list[Death]:
        """The workers that died, after at most so many seconds."""
        iterator = self._iterator()
        if iterator is None:
            return []
        # On a worker's death torch raises RuntimeError wherever the main thread is at that moment.
        with contextlib.suppress(RuntimeError):
            ending = wait([process.sentinel for process in iterator._workers], patience)
            # Its descriptors are closed a moment before a process is gone.
            for process in iterator._workers:
                if process.sentinel in ending:
                    process.join(_PATIENCE)
        return [Death(process.pid, process.exitcode) for process in iterator._workers if not process.is_alive()]

    def close(self) -> None:
        """Ends the workers, if they are this process's: those of the process that it was forked from are let be."""
        iterator, self._batches = self._iterator(), None
        self._returns, self._complete = Returns(self._workers), True
        if self._process != os.getpid():
            self._process = os.getpid()
            if iterator is not None:
                # Else its collection here would tell the other process's workers to end.
                iterator._shutdown = True
        elif iterator is not None:
            iterator._shutdown_workers()


def _unchanged(content: Any) -> Any:
    return content


_with_workers: WeakSet[WorkerProcesses] = WeakSet()


def _let_be() -> None:
    """In a process that was just forked: the workers are the other one's."""
    for processes in _with_workers:
        processes.close()


os.register_at_fork(after_in_child=_let_be)
