"""``SPLIT.index.arrow``: what a reader needs to know of every sample, memory-mapped.

Columns: ``key``, ``shard`` (number within the split), ``position`` (row in the shard's parquet), ``label``, and for
every field ``FIELD_offset`` and ``FIELD_size`` (bytes; −1 where a sample lacks an optional field). Only successful
items are listed, in shard order. Record batches hold :data:`BATCH` rows each (the last may be shorter), so that a
sample's batch is found by division, and neither side ever holds more than one batch outside the map.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shardforge.errors import DamagedError, StorageError
from shardforge.shards.catalogue import Status
from shardforge.shards.manifest import LabelInfo
from shardforge.shards.metadata import label_types

BATCH = 1 << 20

Ids = npt.NDArray[np.int64]


def schema(fields: Sequence[str], label: LabelInfo) -> pa.Schema:
    """The schema of an index over samples with these fields."""
    extents = [(f"{name}_{part}", pa.int64()) for name in sorted(fields) for part in ("offset", "size")]
    names = [("key", pa.string()), ("shard", pa.int32()), ("position", pa.int32())]
    if label.kind != "none":
        names.append(("label", label_types(label)[0]))
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in (*names, *extents)])


def columns(target: pa.Schema) -> list[str]:
    """The parquet columns that :func:`rows` reads for an index of this schema."""
    return ["status", *(name for name in target.names if name != "shard")]


def rows(shard: int, parquet: pa.Table, target: pa.Schema) -> pa.Table:
    """The index rows of one shard, from its parquet rows."""
    kept = parquet.filter(pc.equal(parquet["status"], Status.SUCCESS.value))
    arrays = []
    for column in target:
        if column.name == "shard":
            arrays.append(pa.array(np.full(kept.num_rows, shard, np.int32)))
        elif column.name.endswith(("_offset", "_size")):
            arrays.append(pc.fill_null(kept[column.name], -1))
        else:
            arrays.append(kept[column.name])
    return pa.Table.from_arrays(arrays, schema=target)


def write(path: Path, parts: Iterable[pa.Table], target: pa.Schema) -> None:
    """Writes an index from the rows of all shards, in order."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, target) as writer:
        for batch in _rebatch(parts, target):
            writer.write_batch(batch)


def _rebatch(parts: Iterable[pa.Table], target: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting = target.empty_table()
    for part in parts:
        waiting = pa.concat_tables([waiting, part])
        while waiting.num_rows >= BATCH:
            yield waiting.slice(0, BATCH).combine_chunks().to_batches()[0]
            waiting = waiting.slice(BATCH)
    if waiting.num_rows:
        yield waiting.combine_chunks().to_batches()[0]


@dataclass(frozen=True)
class Extents:
    """Where the payloads of some samples lie.

    Attributes:
        shard: int32 [n], number within the split.
        offset, size: int64 [n], bytes; ``size`` is −1 where a sample lacks the field.
    """

    shard: npt.NDArray[np.int32]
    offset: Ids
    size: Ids


class SplitIndex:
    """A split's index, memory-mapped. Samples are numbered 0 … len-1 in shard order.

    Raises:
        StorageError: the file cannot be opened.
        DamagedError: it is no index of this schema.
    """

    def __init__(self, path: Path, target: pa.Schema) -> None:
        self._path, self._schema = path, target
        self._open()

    def _open(self) -> None:
        try:
            reader = pa.ipc.open_file(pa.memory_map(str(self._path)))
            if not reader.schema.equals(self._schema):
                raise DamagedError("not the index of this dataset: its columns differ", where=self._path)
            self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        except FileNotFoundError:
            raise StorageError("the index is missing", where=self._path) from None
        except (OSError, pa.ArrowException) as error:
            raise DamagedError(f"the index cannot be read ({str(error).splitlines()[0]})", where=self._path) from None
        if any(batch.num_rows != BATCH for batch in self._batches[:-1]):
            raise DamagedError("the index is cut into batches of the wrong size", where=self._path)
        self._length = sum(batch.num_rows for batch in self._batches)

    def __len__(self) -> int:
        return int(self._length)

    def __getstate__(self) -> tuple[Path, pa.Schema]:
        return self._path, self._schema

    def __setstate__(self, state: tuple[Path, pa.Schema]) -> None:
        self._path, self._schema = state
        self._open()

    def extents(self, field: str, ids: Ids) -> Extents:
        """Where ``field`` of the samples ``ids`` (int64 [n]) lies."""
        return Extents(
            self._gather("shard", ids), self._gather(f"{field}_offset", ids), self._gather(f"{field}_size", ids)
        )

    def labels(self, ids: Ids) -> pa.Array:
        """Labels of the samples ``ids``, in the column's own type."""
        return self._take("label", ids)

    def keys(self, ids: Ids) -> list[str]:
        """Keys of the samples ``ids``."""
        return self._take("key", ids).to_pylist()  # type: ignore[no-any-return]

    def places(self, ids: Ids) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(shard number, row in its parquet) of the samples ``ids``, both int32 [n]."""
        return self._gather("shard", ids), self._gather("position", ids)

    def column(self, name: str) -> pa.ChunkedArray:
        """A whole column, mapped, not copied."""
        kind = self._schema.field(name).type
        return pa.chunked_array([batch.column(name) for batch in self._batches], kind)

    def find(self, key: str) -> int | None:
        """The number of the sample with this key, or None."""
        place = pc.index(self.column("key"), key).as_py()
        return None if place < 0 else int(place)

    def _gather(self, name: str, ids: Ids) -> npt.NDArray[Any]:
        if len(self._batches) == 1:
            return self._numpy(0, name)[ids]
        out = np.empty(len(ids), self._schema.field(name).type.to_pandas_dtype())
        for number in np.unique(ids // BATCH):
            mine = ids // BATCH == number
            out[mine] = self._numpy(int(number), name)[ids[mine] % BATCH]
        return out

    def _numpy(self, batch: int, name: str) -> npt.NDArray[Any]:
        return self._batches[batch].column(name).to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]

    def _take(self, name: str, ids: Ids) -> pa.Array:
        if len(self._batches) == 1:
            return self._batches[0].column(name).take(pa.array(ids))
        taken = self.column(name).take(pa.array(ids))
        return pa.concat_arrays(taken.chunks) if taken.num_chunks else pa.array([], taken.type)
