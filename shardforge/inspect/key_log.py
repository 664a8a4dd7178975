"""Logs of which keys training was given: parquet, csv or jsonl.

Three lines in a training loop write one::

    log = open(f"keys-{rank}.jsonl", "a")
    for step, batch in enumerate(loader):      # fields=("image", "label", "key")
        entries = [{"epoch": epoch, "rank": rank, "step": step, "key": key} for key in batch["key"]]
        log.writelines(json.dumps(entry) + "\\n" for entry in entries)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from shardforge.errors import StorageError, UsageError

_NUMBERS = ("epoch", "rank", "step")
_READERS: dict[str, Callable[[str], pa.Table]] = {
    ".parquet": lambda path: pq.read_table(path, partitioning=None),
    # Keys of digits alone must stay what they are.
    ".csv": lambda path: pa.csv.read_csv(
        path,
        convert_options=pa.csv.ConvertOptions(column_types={"key": pa.string()}, strings_can_be_null=False),
    ),
    ".jsonl": lambda path: pa.json.read_json(
        path, parse_options=pa.json.ParseOptions(explicit_schema=pa.schema([("key", pa.string())]))
    ),
}


def read_log(paths: Sequence[Path]) -> pa.Table:
    """Several logs as one table: ``epoch`` int64, ``key`` string ("" for none), and ``rank`` and ``step`` int64
    where all have them.

    Raises:
        UsageError: no rows, another kind of file, or columns that are missing or of the wrong kind.
        StorageError: a file cannot be read.
    """
    tables = [_read(path) for path in paths]
    common = [name for name in ("epoch", "key", "rank", "step") if all(name in t.column_names for t in tables)]
    content = pa.concat_tables([table.select(common) for table in tables]) if tables else pa.table({})
    if not content.num_rows:
        raise UsageError("the log has no rows", where=", ".join(map(str, paths)))
    return content


def _read(path: Path) -> pa.Table:
    read = _READERS.get(path.suffix)
    if read is None:
        raise UsageError("is no log: parquet, csv or jsonl is needed", where=path)
    try:
        content = read(str(path))
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror or error})", where=path) from None
    except pa.ArrowException as error:
        raise UsageError(f"cannot be read as {path.suffix[1:]} ({str(error).splitlines()[0]})", where=path) from None
    arrays = {}
    for name in ("epoch", "key", "rank", "step"):
        if name not in content.column_names:
            if name in ("epoch", "key"):
                told = ", ".join(content.column_names)
                raise UsageError(f"has no column {name!r}", where=path, todo=f"It has: {told}.")
            continue
        kind = pa.int64() if name in _NUMBERS else pa.string()
        try:
            column = content[name].cast(kind)
        except pa.ArrowException:
            raise UsageError(f"its column {name!r} is {content[name].type}, not {kind}", where=path) from None
        if name in _NUMBERS and column.null_count:
            raise UsageError(f"its column {name!r} lacks a number in {column.null_count:,} rows", where=path)
        arrays[name] = pc.fill_null(column, "") if name == "key" else column
    return pa.table(arrays)
