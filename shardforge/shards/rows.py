"""Whether the parquet rows of a shard make sense by themselves, and what they promise about its tar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shardforge.shards import metadata
from shardforge.shards.catalogue import Flag, Reason, Status
from shardforge.shards.manifest import Manifest
from shardforge.shards.tar import BLOCK, Extent, is_key

_REASONS, _FLAGS = frozenset(Reason), frozenset(Flag)

Note = Callable[[str, str | None], None]
"""Takes what is wrong, and the key of the sample concerned or None."""


@dataclass(frozen=True)
class PromisedSample:
    """What a row says about its sample in the tar; the fields are those of the parquet."""

    key: str
    label: Any
    extents: Mapping[str, Extent]
    bytes: int
    sha256: str
    crc32: int

    @property
    def start(self) -> int:
        """Where its first header stands."""
        return min(extent.offset for extent in self.extents.values()) - BLOCK

    @property
    def end(self) -> int:
        """Where the next sample's first header stands."""
        return max(extent.offset + extent.size + -extent.size % BLOCK for extent in self.extents.values())


@dataclass(frozen=True)
class Rows:
    """The checked rows of one shard.

    Attributes:
        table: all own columns of the format.
        user: the schema of the user's columns.
        statuses: how many rows have each status word.
        samples: the successful rows that are sound enough to be compared with the tar.
        keys: of all rows that have one; a key may occur only once in a dataset.
    """

    table: pa.Table
    user: pa.Schema
    statuses: Counter[str]
    samples: tuple[PromisedSample, ...]
    keys: tuple[str, ...]


def load(path: Path, manifest: Manifest, *, split: str, shard: str, most: int, note: Note) -> Rows | None:
    """Reads and checks a parquet file whose checksum is right; None if it is not of this dataset's schema.

    Args:
        most: more rows than this are not read at all.

    Raises:
        Exception: of many kinds, if the content is no sound parquet.
    """
    own = metadata.schema(tuple(manifest.fields), manifest.label, pa.schema([]))
    with pq.ParquetFile(path) as file:
        found, rows, groups = file.schema_arrow, file.metadata.num_rows, file.metadata.num_row_groups
        if found.names[: len(own)] != own.names or not pa.schema(list(found)[: len(own)]).equals(own):
            note(f"its columns are not those of this dataset ({_first_difference(found, own)})", None)
            return None
        if rows > most:
            note(f"has {rows:,} rows where the whole split has {most:,} items", None)
            return None
        if groups > 1:
            note(f"has {groups:,} row groups where one belongs", None)
        table = file.read(columns=own.names)
    return _check(table, pa.schema(list(found)[len(own) :]), manifest, split, shard, note)


def _first_difference(found: pa.Schema, own: pa.Schema) -> str:
    for number, column in enumerate(own):
        if number >= len(found) or not found.field(number).equals(column):
            there = _told(found.field(number)) if number < len(found) else "nothing"
            return f"{there} where {_told(column)} belongs"
    return "a name occurs twice"


def _told(column: pa.Field) -> str:
    return f"{column.name}: {column.type}"


def _check(table: pa.Table, user: pa.Schema, manifest: Manifest, split: str, shard: str, note: Note) -> Rows:
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    samples: list[PromisedSample] = []
    keys = []
    for number in range(table.num_rows):
        row = {name: column[number] for name, column in columns.items()}
        problem = _place_problem(row, number, split, shard) or _word_problem(row)
        if problem is None and row["status"] == Status.SUCCESS:
            problem = _success_problem(row, manifest)
            if problem is None:
                sample = _promise(row, manifest)
                if manifest.foreign is None and samples and sample.start < samples[-1].end:
                    problem = "its bytes do not follow those of the row before"
                samples.append(sample)
        elif problem is None:
            problem = _failure_problem(row, manifest)
        if problem is not None:
            note(f"row {number:,}: {problem}", row["key"])
        if row["key"] is not None:
            keys.append(row["key"])
    return Rows(table, user, Counter(columns["status"]), tuple(samples), tuple(keys))


def _place_problem(row: Mapping[str, Any], number: int, split: str, shard: str) -> str | None:
    for name, right in (("position", number), ("shard", shard), ("split", split)):
        if row[name] != right:
            return f"{name} is {row[name]!r} where {right!r} belongs"
    return None


def _word_problem(row: Mapping[str, Any]) -> str | None:
    status, reason = row["status"], row["reason"]
    if status not in tuple(Status):
        return f"unknown status {status!r}"
    if reason is not None and reason not in _REASONS:
        return f"unknown reason {reason!r}"
    strange = [flag for flag in row["flags"] or () if flag not in _FLAGS]
    return f"unknown flag {strange[0]!r}" if strange else None


def _success_problem(row: Mapping[str, Any], manifest: Manifest) -> str | None:
    if row["reason"] is not None:
        return f"a success with the reason {row['reason']!r}"
    if not row["key"] or (manifest.foreign is None and not is_key(row["key"])):
        return f"illegal key {row['key']!r}"
    missing = [name for name in ("bytes", "sha256", "sample_crc32", "source", "flags") if row[name] is None]
    if missing:
        return f"a success without {missing[0]}"
    for name, info in manifest.fields.items():
        offset, size = row[f"{name}_offset"], row[f"{name}_size"]
        if (offset is None) != (size is None):
            return f"{name} has only one of offset and size"
        if offset is None and not info.optional:
            return f"a success without the required field {name}"
        if offset is not None and (offset < BLOCK or size < 0):
            return f"{name} lies at an impossible place ({offset:,}, {size:,} bytes)"
    if row["bytes"] != row[f"{manifest.image_field}_size"]:
        return f"bytes is {row['bytes']:,}, the size of the main payload {row[f'{manifest.image_field}_size']:,}"
    return _label_problem(row["label"], row["label_name"], manifest)


def _label_problem(label: Any, name: Any, manifest: Manifest) -> str | None:
    kind, size = manifest.label.kind, manifest.label.size
    if kind == "class":
        good = label is not None and manifest.classes.get(name) == label
    elif kind == "multi":
        good = label is not None and name is not None and [manifest.classes.get(word) for word in name] == label
    elif kind == "number" and size == 1:
        good = label is not None and name is None
    elif kind == "number":
        good = label is not None and len(label) == size and None not in label and name is None
    else:
        good = label is None and name is None
    return None if good else f"label {label!r} ({name!r}) is none of this dataset's labels"


def _failure_problem(row: Mapping[str, Any], manifest: Manifest) -> str | None:
    if row["status"] in (Status.FAILED, Status.FILTERED) and row["reason"] is None:
        return f"{row['status']} without a reason"
    extents = [f"{name}_{part}" for name in manifest.fields for part in ("offset", "size")]
    taken = [name for name in extents if row[name] is not None]
    return f"not a success, but has {taken[0]}" if taken else None


def _promise(row: Mapping[str, Any], manifest: Manifest) -> PromisedSample:
    extents = {
        name: Extent(row[f"{name}_offset"], row[f"{name}_size"])
        for name in manifest.fields
        if row[f"{name}_offset"] is not None
    }
    return PromisedSample(row["key"], row["label"], extents, row["bytes"], row["sha256"], row["sample_crc32"])
