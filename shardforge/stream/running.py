"""The pass over a loader that is running, and what becomes of its iterator when it is no longer the one."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from typing import Any

from shardforge.errors import UsageError
from shardforge.stream.handover import Pass


class RunningPass(Iterator[Any]):
    """Gives the batches of one pass. Where it cannot go on, it says so: it never ends as if it were complete.

    Args:
        batches: of the pass.
        progress: how many of them were handed over.
    """

    def __init__(self, batches: Generator[Any, None, None], progress: Pass) -> None:
        self._batches, self._progress, self._process = batches, progress, os.getpid()
        self._ended: str | None = None

    def __next__(self) -> Any:
        if self._process != os.getpid():
            raise UsageError("this pass was begun by another process", todo="Begin one here: iter(loader).")
        if self._ended is not None:
            raise UsageError(
                f"this pass cannot go on: {self._ended}",
                todo="A loader has one pass at a time; make a second loader for a second one beside it.",
            )
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except BaseException:
            self._ended = "it was ended by an error"
            raise

    def end(self, why: str) -> None:
        """Makes no more batches; ``why`` is what is said to whoever asks for one."""
        if not self._progress.complete:
            self._ended = self._ended or why
        self._batches.close()
