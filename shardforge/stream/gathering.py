"""Rows of several batches, gathered at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

from shardforge.stream.sample import Rows


class Gathering:
    """Gathers when the first of several threads asks: for a few rows that takes nearly as long as for many, and all
    the while no other thread can run Python.

    Args:
        gather: gathers all the rows.
    """

    def __init__(self, gather: Callable[[], Rows]) -> None:
        self._gather = gather
        self._lock = threading.Lock()
        self._rows: Rows | None = None

    def part(self, first: int, end: int) -> Rows:
        """The rows ``first`` … ``end`` - 1 of them."""
        with self._lock:
            if self._rows is None:
                self._rows = self._gather()
        return self._rows.part(first, end)
