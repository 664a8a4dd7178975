"""Which samples take part in an epoch (``where``), and how often each is drawn (``weights``)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from shardforge.errors import DamagedError, UsageError
from shardforge.shards import layout
from shardforge.shards.catalogue import Status
from shardforge.shards.index import Ids
from shardforge.stream.reader import Split

BALANCED = "balanced"

Weights = npt.ArrayLike | str | None


def select(split: Split, where: pc.Expression | None) -> Ids | None:
    """Numbers of the samples for which ``where``, an expression over parquet columns, is true; null counts as false.

    Returns:
        int64 [n], ascending, or None for all.

    Raises:
        UsageError: it is no such expression, names no column, or is true for no sample.
    """
    if where is None:
        return None
    if not isinstance(where, pc.Expression):
        raise UsageError(
            f"where={where!r} is no expression", todo='For example where=pyarrow.compute.field("width") >= 256.'
        )
    kept = [_kept(split, number, where) for number in range(len(split.shards))]
    ids = np.flatnonzero(np.concatenate([*kept, np.empty(0, bool)]))
    if not len(ids):
        raise UsageError(f"where={where} is true for none of the {len(split)} samples", where=split.root)
    return ids.astype(np.int64)


def _kept(split: Split, shard: int, where: pc.Expression) -> npt.NDArray[np.bool_]:
    path = layout.parquet_path(split.root, split.shards[shard])
    try:
        rows = pyarrow.dataset.dataset(str(path), format="parquet")
    except (OSError, pa.ArrowException) as error:
        raise DamagedError(f"cannot be read as parquet ({str(error).splitlines()[0]})", where=path) from None
    try:
        succeeded = pc.field("status") == Status.SUCCESS.value
        kept = rows.to_table(columns={"kept": where}, filter=succeeded)["kept"]
    except OSError as error:
        raise DamagedError(f"cannot be read as parquet ({str(error).splitlines()[0]})", where=path) from None
    except pa.ArrowException as error:
        todo = f"The columns are: {', '.join(rows.schema.names)}."
        raise UsageError(f"where={where}: {str(error).splitlines()[0]}", where=path, todo=todo) from None
    if not pa.types.is_boolean(kept.type):
        raise UsageError(f"where={where} gives {kept.type}, not true or false")
    if len(kept) != split.counts[shard]:
        raise DamagedError(f"{len(kept)} successful rows for {split.counts[shard]} samples", where=path)
    return np.asarray(pc.fill_null(kept, False), bool)


def choose_weights(split: Split, weights: Weights, ids: Ids | None) -> npt.NDArray[np.float64] | None:
    """The weight of every sample that takes part, float64 [n].

    Args:
        weights: one number per sample of the *split*, a parquet column, or ``"balanced"``: every class that occurs is
            drawn equally often.
        ids: the samples that take part, or None for all.

    Raises:
        UsageError: the weights cannot be used.
    """
    if weights is None:
        return None
    if isinstance(weights, str) and weights == BALANCED:
        return _balanced(split, ids)
    given = _column(split, weights) if isinstance(weights, str) else _numbers(weights)
    if given.shape != (len(split),):
        raise UsageError(f"weights of shape {given.shape} for the {len(split)} samples of split {split.name!r}")
    return given if ids is None else given[ids]


def _balanced(split: Split, ids: Ids | None) -> npt.NDArray[np.float64]:
    if split.manifest.label.kind != "class":
        raise UsageError("weights='balanced' needs single-class labels", where=split.root)
    labels = np.asarray(split.index.column("label"), np.int64)
    labels = labels if ids is None else labels[ids]
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / counts[which], np.float64)


def _column(split: Split, name: str) -> npt.NDArray[np.float64]:
    names = split.schema().names
    if name not in names:
        raise UsageError(f"weights={name!r} is no column", where=split.root, todo=f"There are: {', '.join(names)}.")
    column = split.table([name])[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)) or column.null_count:
        raise UsageError(f"weights={name!r}: the column must hold a number in every row", where=split.root)
    return np.asarray(column, np.float64)


def _numbers(weights: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise UsageError("weights are numbers, a column's name or 'balanced'") from None
