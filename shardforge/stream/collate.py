"""Rows → a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from shardforge.errors import UsageError
from shardforge.stream.sample import Sample

MIXED_SIZES = (
    "Crop or resize them alike (say transform=RandomResizedCrop(224)), build with `--resize exact` or `--resize pad`,"
    " or leave batch_size away and give a DataLoader a collate_fn that pads."
)


def to_torch(value: Any) -> Any:
    """Arrays and NumPy scalars → tensors; anything else as it is."""
    if isinstance(value, np.generic):
        return torch.from_numpy(np.array(value))
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    return value


def batch(rows: Sequence[Sample]) -> dict[str, Any]:
    """Rows with the same names → name → tensor with one more dimension in front, or a list for what is no number.

    Raises:
        UsageError: values of different shapes or types under one name.
    """
    return {name: _stack(name, rows) for name in rows[0]}


def _stack(name: str, rows: Sequence[Sample]) -> Any:
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
    return torch.from_numpy(np.stack(values))


def _mixed(name: str, one: Sample, other: Sample) -> UsageError:
    a, b = one[name], other[name]
    if _kind(a) == _kind(b):
        what = f"{name!r} of different sizes cannot form a batch: {list(a.shape)} and {list(b.shape)}"
        return UsageError(what, todo=MIXED_SIZES)
    return UsageError(f"{name!r} of different types cannot form a batch: {_kind(a)} and {_kind(b)}")


def _kind(value: Any) -> str:
    return f"{'tensor' if isinstance(value, torch.Tensor) else 'array'} of {value.dtype}"
