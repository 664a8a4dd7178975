"""Opens the table that ``--table`` names, by its extension."""

from __future__ import annotations

from pathlib import Path

from shardforge.errors import UsageError
from shardforge.sources.tables.column import Table
from shardforge.sources.tables.jsonl import JsonLines
from shardforge.sources.tables.parquet import ParquetTable
from shardforge.sources.tables.text import SeparatedTable


def open_table(path: Path) -> Table:
    """A csv, tsv, parquet or jsonl file as a table.

    Raises:
        UsageError: there is no such file, it has another extension, or its header is unusable.
        StorageError: it cannot be read.
    """
    if not path.exists():
        raise UsageError("there is no such table", where=path)
    if not path.is_file():
        raise UsageError("is not a file, so it cannot be the table", where=path)
    match path.suffix.lower():
        case ".csv":
            return SeparatedTable(path, ",")
        case ".tsv" | ".tab":
            return SeparatedTable(path, "\t")
        case ".parquet" | ".pq":
            return ParquetTable(path)
        case ".jsonl" | ".ndjson":
            return JsonLines(path)
        case other:
            raise UsageError(
                f"a table ends in .csv, .tsv, .parquet or .jsonl, not in {other or 'nothing'!r}", where=path
            )
