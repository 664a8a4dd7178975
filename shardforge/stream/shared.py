"""A few integers that a training process shares with its DataLoader workers, and with nobody else.

A dataset may be made in a launcher and handed to several training processes, by fork or by pickle, before any of them
starts workers. Memory that simply travelled along would be shared between the ranks too, and one rank's epoch would
become another's. So every copy that is unpickled has memory of its own, used by the process that unpickled it and the
workers that it forks, while a worker that unpickled its copy uses its sender's memory; and of memory that came by
fork, every training process uses a row of its own.

The memory is an unlinked file descriptor: nothing of it has a name, and nothing stays behind.
"""

from __future__ import annotations

import multiprocessing
import os

import torch
from torch.utils.data import get_worker_info

_ROWS = 256
"""Row 0 belongs to the process that made the memory, the others to processes forked from it, by process number."""

_State = tuple[torch.Tensor, int, int]
"""Memory [rows, width], the process that made it, and the training process whose row is meant."""


class SharedWords:
    """Rows of ``width`` int64 words, zero at first."""

    def __init__(self, width: int) -> None:
        self._own, self._maker = _memory(width), os.getpid()
        self._sent: _State | None = None

    def __getstate__(self) -> _State:
        return self._here()

    def __setstate__(self, state: _State) -> None:
        self._own, self._maker = _memory(state[0].shape[1]), os.getpid()
        self._sent = state

    def row(self) -> torch.Tensor:
        """int64 [width], shared by this training process and its workers; a view to write to."""
        words, maker, trainer = self._here()
        return words[0 if trainer == maker else 1 + trainer % (_ROWS - 1)]

    def makers_row(self) -> torch.Tensor:
        """The row of the process that made the memory that :meth:`row` lies in."""
        return self._here()[0][0]

    def unpickled_row(self) -> torch.Tensor:
        """The row that this process would use as a training process, right after it unpickled this object."""
        return self._own[0]

    def _here(self) -> _State:
        if get_worker_info() is None:
            return self._own, self._maker, os.getpid()
        if self._maker == os.getpid() and self._sent is not None:
            return self._sent
        parent = multiprocessing.parent_process()
        return self._own, self._maker, os.getpid() if parent is None or parent.pid is None else parent.pid


def _memory(width: int) -> torch.Tensor:
    words = torch.zeros((_ROWS, width), dtype=torch.int64)
    words.share_memory_()  # type: ignore[no-untyped-call]
    return words
