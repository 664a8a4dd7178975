"""Counting samples that could not be read, across worker processes."""

from __future__ import annotations

import logging

import torch

from shardforge.stream.epoch import shared

logger = logging.getLogger("shardforge.stream")

SLOTS = 256


class ErrorTally:
    """How many bad samples were replaced. Each worker counts in a word of its own, so that none is lost."""

    def __init__(self) -> None:
        self._words: torch.Tensor = shared(torch.zeros(SLOTS, dtype=torch.int64))
        self._seen: set[str] = set()

    def __getstate__(self) -> torch.Tensor:
        return self._words

    def __setstate__(self, words: torch.Tensor) -> None:
        self._words, self._seen = shared(words), set()

    @property
    def total(self) -> int:
        return int(self._words.sum())

    def add(self, slot: int, cause: str, error: Exception) -> None:
        """Counts one bad sample; the first of every cause is logged (by each process that meets it)."""
        self._words[slot % SLOTS] += 1
        if cause not in self._seen:
            self._seen.add(cause)
            logger.warning("a sample is masked, and so will be others like it: %s", error)
