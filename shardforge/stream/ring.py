"""Shared memory that a worker fills again once the training process has no more use for it.

The system clears every page of new shared memory, which takes about half as long as decoding a small JPEG into it. So
a byte behind each batch says whether the training process is done with it, and the worker looks there first. Nothing
of this has a name: the memory goes when both processes have let go of it, or died.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from shardforge.stream.slots import shared, torch_type

_FLAG = 64
"""Bytes behind a batch; the first of them is its flag. As many as keep whatever follows aligned."""
_LENT, _FREE, _LOST = 0, 1, 2
_KEPT = 16
"""How many buffers a ring keeps. Beyond that (when batches are being collected, say) memory is used once."""


class SharedRing:
    """Gives memory in a worker process; see :class:`~shardforge.stream.slots.Slots`. Serves until a pass is left
    early: batches on their way are lost then, and with them their return. Threads may share one object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buffers: list[torch.Tensor] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        size = int(np.prod(shape)) * dtype.itemsize
        room = -(-size // _FLAG) * _FLAG + _FLAG
        with self._lock:
            buffer = next((b for b in self._buffers if len(b) == room and _state(b) == _FREE), None)
            if buffer is None:
                buffer = shared((room,), torch.uint8)
                self._keep(buffer)
            buffer[-_FLAG] = _LENT
        return buffer[:size].view(torch_type(dtype)).view(shape)

    def _keep(self, buffer: torch.Tensor) -> None:
        """Adds a buffer, if there is room or one that nobody has a use for."""
        self._buffers = [b for b in self._buffers if _state(b) != _LOST]
        if len(self._buffers) == _KEPT:
            unused = next((number for number, b in enumerate(self._buffers) if _state(b) == _FREE), None)
            if unused is None:
                return
            del self._buffers[unused]
        self._buffers.append(buffer)

    def lent(self, content: dict[str, Any]) -> list[str]:
        """The names under which ``content`` has memory of this ring."""
        with self._lock:
            mine = {buffer.data_ptr() for buffer in self._buffers}
        return [
            name for name, value in content.items() if isinstance(value, torch.Tensor) and value.data_ptr() in mine
        ]


class Returns:
    """In the training process: gives the memory of a worker's batches back when the last reference to it has gone."""

    def __init__(self, workers: int) -> None:
        self._most = workers * _KEPT
        # As long as a buffer is mapped here, the next batch in it needs no new map.
        self._mapped: OrderedDict[int, torch.UntypedStorage] = OrderedDict()

    def __call__(self, content: dict[str, Any], lent: Sequence[str]) -> dict[str, Any]:
        """The batch, whose fields ``lent`` lie in memory of a ring."""
        return {**content, **{name: self._watched(content[name]) for name in lent}}

    def forget(self, storage: torch.UntypedStorage) -> None:
        """Keeps no map of memory that no batch will come in again."""
        self._mapped.pop(storage.data_ptr(), None)

    def _watched(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self._mapped[storage.data_ptr()] = storage
        self._mapped.move_to_end(storage.data_ptr())
        if len(self._mapped) > self._most:
            self._mapped.popitem(last=False)
        flag = torch.empty(0, dtype=torch.uint8).set_(storage, storage.nbytes() - _FLAG, (1,))  # type: ignore[call-overload]
        # The tensor made of this array, and everything derived from it, keep it alive, and nothing else does.
        array = tensor.numpy()
        weakref.finalize(array, _give_back, flag, weakref.ref(self), os.getpid(), _forks).atexit = False
        return torch.from_numpy(array)


def _state(buffer: torch.Tensor) -> int:
    return int(buffer[-_FLAG])


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


# Before: a batch that the new process has. After: one that another thread got meanwhile, which it may have.
os.register_at_fork(before=_count_fork, after_in_parent=_count_fork)


def _give_back(flag: torch.Tensor, returns: weakref.ref[Returns], process: int, forks: int) -> None:
    """Sets the flag of a batch that came after so many forks of this process.

    A forked process shares the memory: what it lets go, the process that the batch was given to may have still; and
    what that one lets go, a process that it forked meanwhile may have.
    """
    if os.getpid() != process:
        return
    if forks == _forks:
        flag.fill_(_FREE)
    else:
        flag.fill_(_LOST)
        giver = returns()
        if giver is not None:
            giver.forget(flag.untyped_storage())
