"""Rows → batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from shardforge.errors import UsageError
from shardforge.stream.slots import FreshSlots, Slots

Sample = dict[str, Any]
Collate = Callable[[Sequence[Sample]], Mapping[str, Any]]
"""Complete rows (NumPy and Python values) → a batch."""

MIXED_SIZES = (
    "Crop or resize them alike (say transform=RandomResizedCrop(224)), build with `--resize exact` or `--resize pad`,"
    " or give collate=shardforge.transforms.PadCollate(), which pads them."
)


def to_torch(value: Any) -> Any:
    """Arrays and NumPy scalars → tensors; anything else as it is."""
    if isinstance(value, np.generic):
        return torch.from_numpy(np.array(value))
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    return value


def stack(name: str, rows: Sequence[Sample], slots: Slots) -> Any:
    """The values that the rows have under one name → a tensor with one more dimension in front, in memory of
    ``slots``; a list for what is no number.

    Raises:
        UsageError: values of different shapes or types, or missing ones.
    """
    try:
        values = [row[name] for row in rows]
    except KeyError:
        raise UsageError(f"transform_sample gave some samples a {name!r}, and others none") from None
    if not all(isinstance(value, np.ndarray | np.generic | torch.Tensor) for value in values):
        return values
    first = values[0]
    for row, value in zip(rows, values, strict=True):
        if value.shape != first.shape or _kind(value) != _kind(first):
            raise _mixed(name, rows[0], row)
    if isinstance(first, torch.Tensor):
        return torch.stack(values)
    if not first.ndim:
        return torch.from_numpy(np.stack(values))
    out = slots.take((len(values), *first.shape), first.dtype)
    np.stack(values, out=out.numpy())
    return out


class PadCollate:
    """Makes batches of arrays of different sizes: each is padded at the end of every dimension to the largest.

    For ``collate=`` of a reader, or as the ``collate_fn`` of a DataLoader over single samples.

    Args:
        fill: the value around the smaller ones.
        multiple: sides of images (the first two dimensions of arrays with three) are rounded up to a multiple of it.

    Returns:
        Under every name what a batch of equal sizes would hold, and for each name of arrays but ``label`` also
        ``NAME_shape``, int64 [B, dimensions]: what the rows had.

    Raises:
        UsageError: arrays of different types or numbers of dimensions.
    """

    def __init__(self, fill: float = 0, multiple: int = 1) -> None:
        if multiple < 1:
            raise UsageError(f"PadCollate with multiple={multiple}: at least 1")
        self.fill, self.multiple = fill, multiple

    def __call__(self, rows: Sequence[Sample]) -> Sample:
        out: Sample = {}
        for name in rows[0]:
            values = [row[name].numpy() if isinstance(row[name], torch.Tensor) else row[name] for row in rows]
            if name != "label" and all(isinstance(value, np.ndarray) and value.ndim for value in values):
                out[name], out[f"{name}_shape"] = self._padded(name, values)
            else:
                out[name] = stack(name, [{name: value} for value in values], FreshSlots())
        return out

    def _padded(self, name: str, values: Sequence[npt.NDArray[Any]]) -> tuple[torch.Tensor, torch.Tensor]:
        if len({(value.ndim, value.dtype) for value in values}) > 1:
            raise UsageError(f"{name!r} of different types or numbers of dimensions cannot be padded to a batch")
        shapes = np.array([value.shape for value in values], np.int64)
        largest = shapes.max(axis=0)
        if len(largest) == 3:
            largest[:2] = -(-largest[:2] // self.multiple) * self.multiple
        padded = np.full((len(values), *largest), self.fill, values[0].dtype)
        for row, value in zip(padded, values, strict=True):
            row[tuple(slice(0, side) for side in value.shape)] = value
        return torch.from_numpy(padded), torch.from_numpy(shapes)


def _mixed(name: str, one: Sample, other: Sample) -> UsageError:
    a, b = one[name], other[name]
    if _kind(a) == _kind(b):
        what = f"{name!r} of different sizes cannot form a batch: {list(a.shape)} and {list(b.shape)}"
        return UsageError(what, todo=MIXED_SIZES)
    return UsageError(f"{name!r} of different types cannot form a batch: {_kind(a)} and {_kind(b)}")


def _kind(value: Any) -> str:
    return f"{'tensor' if isinstance(value, torch.Tensor) else 'array'} of {value.dtype}"
