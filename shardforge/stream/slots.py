"""Where batches lie in memory: tensors that are written once and handed over without a copy."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

_KEPT = 8
"""How many free buffers are kept for batches to come."""


class Slots(Protocol):
    """Gives memory for batches."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        """A tensor with any content, that nobody else refers to."""


class FreshSlots:
    """New memory for every batch."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        return torch.from_numpy(np.empty(shape, dtype))


class PinnedSlots:
    """Page-locked memory, from which a GPU copies on its own; torch keeps and reuses it."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        return torch.empty(shape, dtype=torch_type(dtype), pin_memory=True)


class SharedSlots:
    """Anonymous shared memory, for a worker process: what lies in it is handed to the training process by a
    descriptor, not copied."""

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        return shared(shape, torch_type(dtype))


class RecycledSlots:
    """Memory that is used again when the last reference to a batch has gone, however long that takes: having the
    system clear fresh pages for every batch costs several percent of the time to decode it."""

    def __init__(self) -> None:
        self._free: deque[npt.NDArray[np.uint8]] = deque(maxlen=_KEPT)

    def __reduce__(self) -> tuple[type[RecycledSlots], tuple[()]]:
        return RecycledSlots, ()

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> torch.Tensor:
        size = int(np.prod(shape)) * dtype.itemsize
        buffer = self._fitting(size)
        # The tensor and everything derived from it keep this array alive, and nothing else does.
        lent = np.ndarray(shape, dtype, buffer[:size].data)
        weakref.finalize(lent, self._free.append, buffer).atexit = False
        return torch.from_numpy(lent)

    def _fitting(self, size: int) -> npt.NDArray[np.uint8]:
        while self._free:
            try:
                buffer = self._free.popleft()
            except IndexError:
                break
            if size <= len(buffer) <= 2 * size:
                return buffer
        return np.empty(max(1, size), np.uint8)


def shared(shape: tuple[int, ...], kind: torch.dtype) -> torch.Tensor:
    """A tensor of zeros in new anonymous shared memory."""
    size = max(1, int(np.prod(shape)) * kind.itemsize)
    storage = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    return torch.empty(0, dtype=kind).set_(storage, 0, shape)  # type: ignore[call-overload,no-any-return]


def torch_type(dtype: np.dtype[Any]) -> torch.dtype:
    """torch's name of a NumPy type."""
    return torch.from_numpy(np.empty(0, dtype)).dtype
