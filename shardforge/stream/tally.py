"""Counting samples that could not be read, across worker processes."""

from __future__ import annotations

import logging
import os
import threading

from shardforge.stream.shared import SharedWords

logger = logging.getLogger("shardforge.stream")

_SLOTS = 256
_CAUSES = 20
"""So many causes are logged by one process: some quote the bytes that they found, so that no two are alike."""


class ErrorTally:
    """How many bad samples were replaced. Each worker counts in a word of its own, so that none is lost. Threads may
    share one object."""

    def __init__(self) -> None:
        self._begin(SharedWords(_SLOTS))

    def _begin(self, shared: SharedWords) -> None:
        self._shared, self._seen = shared, set[str]()
        self._lock, self._owner = threading.Lock(), os.getpid()

    def __getstate__(self) -> SharedWords:
        return self._shared

    def __setstate__(self, shared: SharedWords) -> None:
        self._begin(shared)

    @property
    def total(self) -> int:
        return int(self._shared.row().sum())

    def add(self, slot: int, cause: str, error: Exception) -> None:
        """Counts one bad sample; the first of every cause is logged (by each process that meets it)."""
        if self._owner != os.getpid():
            # A thread of the parent's may have held the lock when this process was forked.
            self._lock, self._owner = threading.Lock(), os.getpid()
        with self._lock:
            self._shared.row()[slot % _SLOTS] += 1
            new = cause not in self._seen and len(self._seen) < _CAUSES
            if new:
                self._seen.add(cause)
            last = new and len(self._seen) == _CAUSES
        if new:
            others = "; other causes that follow are counted, not logged" if last else ""
            logger.warning("a sample is masked, and so will be others like it: %s%s", error, others)
