"""Counting samples that could not be read, across worker processes."""

from __future__ import annotations

import logging

from shardforge.stream.shared import SharedWords

logger = logging.getLogger("shardforge.stream")

_SLOTS = 256


class ErrorTally:
    """How many bad samples were replaced. Each worker counts in a word of its own, so that none is lost."""

    def __init__(self) -> None:
        self._shared = SharedWords(_SLOTS)
        self._seen: set[str] = set()

    def __getstate__(self) -> SharedWords:
        return self._shared

    def __setstate__(self, shared: SharedWords) -> None:
        self._shared, self._seen = shared, set()

    @property
    def total(self) -> int:
        return int(self._shared.row().sum())

    def add(self, slot: int, cause: str, error: Exception) -> None:
        """Counts one bad sample; the first of every cause is logged (by each process that meets it)."""
        self._shared.row()[slot % _SLOTS] += 1
        if cause not in self._seen:
            self._seen.add(cause)
            logger.warning("a sample is masked, and so will be others like it: %s", error)
