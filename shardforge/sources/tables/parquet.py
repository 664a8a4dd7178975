"""Tables as parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shardforge.errors import ShardforgeError, StorageError, UsageError
from shardforge.sources.tables.column import Column, TypedColumn
from shardforge.sources.tables.text import name_columns

_BATCH = 8192


class ParquetTable:
    """A parquet file, read a batch at a time.

    Raises:
        UsageError: the file is no parquet, or its columns are unusable.
        StorageError: it cannot be read.
    """

    unit = "row"

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._path = path
        try:
            self._schema: pa.Schema = pq.read_schema(path)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._damaged(error) from None
        self.columns: tuple[str, ...] = name_columns(self._schema.names, path)

    def rows(self) -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        try:
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(_BATCH):
                    for cells in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        number += 1
                        yield number, cells
        except (OSError, ValueError, pa.ArrowException) as error:
            raise self._damaged(error) from None

    def column(self, name: str) -> Column:
        return TypedColumn(self._schema.field(self.columns.index(name)).type)

    def _damaged(self, error: Exception) -> ShardforgeError:
        if isinstance(error, OSError) and error.errno:
            return StorageError(f"cannot be read ({error.strerror})", where=self._path)
        return UsageError(f"cannot be read as parquet ({str(error).splitlines()[0]})", where=self._path)
