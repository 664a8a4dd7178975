"""Logs of which keys training was given: parquet, csv or jsonl.

Three lines in a training loop write one::

    log = open(f"keys-{rank}.jsonl", "a")
    for step, batch in enumerate(loader):      # fields=("image", "label", "key")
        entries = [{"epoch": epoch, "rank": rank, "step": step, "key": key} for key in batch["key"]]
        log.writelines(json.dumps(entry) + "\\n" for entry in entries)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from shardforge.errors import StorageError, UsageError
from shardforge.inspect.cut_lines import without_cut_csv, without_cut_jsonl

_NUMBERS = ("epoch", "rank", "step")
_READERS: dict[str, Callable[[bytes], pa.Table]] = {
    ".parquet": lambda data: pq.read_table(pa.BufferReader(data)),
    # Keys of digits alone must stay what they are.
    ".csv": lambda data: pa.csv.read_csv(
        pa.BufferReader(data),
        convert_options=pa.csv.ConvertOptions(column_types={"key": pa.string()}, strings_can_be_null=False),
    ),
    ".jsonl": lambda data: pa.json.read_json(
        pa.BufferReader(data),
        parse_options=pa.json.ParseOptions(explicit_schema=pa.schema([("key", pa.string())])),
    ),
}
_MENDERS: dict[str, Callable[[bytes], tuple[bytes, int]]] = {".csv": without_cut_csv, ".jsonl": without_cut_jsonl}


@dataclass(frozen=True)
class KeyLog:
    """Several logs as one.

    Attributes:
        rows: ``epoch`` int64, ``key`` string ("" for none), and ``rank`` and ``step`` int64 where all have them.
        notes: what a kill left: empty logs, and lines that were left out because they are cut.
    """

    rows: pa.Table
    notes: tuple[str, ...]


def read_log(paths: Sequence[Path]) -> KeyLog:
    """Several logs as one.

    A log that is empty, as that of a rank that was killed early, is no keys. A last line that was cut is left out.

    Raises:
        UsageError: no rows, another kind of file, or columns that are missing or of the wrong kind.
        StorageError: a file cannot be read.
    """
    notes: list[str] = []
    tables = [table for path in paths if (table := _read(path, notes)) is not None]
    common = [name for name in ("epoch", "key", "rank", "step") if all(name in t.column_names for t in tables)]
    content = pa.concat_tables([table.select(common) for table in tables]) if tables else pa.table({})
    if not content.num_rows:
        raise UsageError("the log has no rows", where=", ".join(map(str, paths)))
    return KeyLog(content, tuple(notes))


def _read(path: Path, notes: list[str]) -> pa.Table | None:
    read = _READERS.get(path.suffix)
    if read is None:
        raise UsageError("is no log: parquet, csv or jsonl is needed", where=path)
    try:
        data, mend = path.read_bytes(), _MENDERS.get(path.suffix)
        content = _whole(read, data, mend, path, notes)
        if content is None:
            return None
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


def _whole(
    read: Callable[[bytes], pa.Table],
    data: bytes,
    mend: Callable[[bytes], tuple[bytes, int]] | None,
    path: Path,
    notes: list[str],
) -> pa.Table | None:
    """What a log holds, without lines that were cut; None for an empty one."""
    if not data.strip():
        notes.append(f"{path}: is empty, which counts as no keys")
        return None
    mended, cut = data, 0
    # Whether a line was cut shows at the end, or by the reader's refusing what stands before it.
    if mend is not None and not data.endswith(b"\n"):
        mended, cut = mend(data)
    try:
        content = read(mended) if mended.strip() else None
    except pa.ArrowInvalid:
        if mend is None:
            raise
        mended, cut = mend(data)
        if not cut:
            raise
        content = read(mended)
    if cut:
        notes.append(f"{path}: {cut:,} cut line{'s' * (cut != 1)} left out")
    return content
