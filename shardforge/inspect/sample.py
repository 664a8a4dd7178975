"""One item of a dataset: its row, its members, and their bytes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.inspect.columns import aligned
from shardforge.inspect.confined import write_confined
from shardforge.shards import layout, metadata
from shardforge.shards.index import SplitIndex, schema
from shardforge.shards.manifest import Manifest
from shardforge.shards.tar import BLOCK, MAX_MEMBER, MAX_NAME, header, is_field, is_key
from shardforge.text import plain

_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
_TODO = "--verify names everything that is wrong."


@dataclass(frozen=True)
class Member:
    """A file of a sample: its name in the tar, its field, and where its payload lies, in bytes."""

    name: str
    field: str
    offset: int
    size: int


@dataclass(frozen=True)
class SampleView:
    """One planned item, whatever became of it.

    Attributes:
        root: the dataset's folder.
        split, shard, position: where its row is.
        number: its sample number over all splits in the order of the manifest; None for an item without a sample.
        row: its parquet row, every column.
        members: its files in the tar, in order; empty for an item without a sample.
        foreign: whether the tar was made elsewhere, so that its headers are not ours.
    """

    root: Path
    split: str
    shard: str
    position: int
    number: int | None
    row: dict[str, Any]
    members: tuple[Member, ...]
    foreign: bool = False

    def read(self, member: Member) -> bytes:
        """The bytes of a member.

        Raises:
            StorageError: the tar cannot be read.
            DamagedError: the tar holds something else there.
        """
        path = layout.tar_path(self.root, self.shard)
        try:
            with open(path, "rb") as file:
                if member.offset + member.size > os.fstat(file.fileno()).st_size:
                    raise DamagedError(f"ends before or inside {member.name!r}", where=path, todo=_TODO)
                file.seek(member.offset - BLOCK)
                if file.read(BLOCK) != header(member.name, member.size) and not self.foreign:
                    raise DamagedError(f"{member.name!r} is not at byte {member.offset:,}", where=path, todo=_TODO)
                return file.read(member.size)
        except OSError as error:
            raise StorageError(f"cannot be read ({error.strerror})", where=path) from None

    def save(self, directory: Path) -> list[Path]:
        """Writes the members as ``KEY.FIELD`` into a folder, which is made if needed; slashes in keys are folders.

        Never writes outside the folder: a link in the way is not followed, a link or file of a member's name is
        replaced.

        Raises:
            StorageError: the folder cannot be written.
            DamagedError: see :meth:`read`.
        """
        return [write_confined(directory, member.name, self.read(member)) for member in self.members]

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``; what JSON has no word for is written as text, a NaN as null."""
        return {
            "key": self.row["key"],
            "split": self.split,
            "shard": self.shard,
            "position": self.position,
            "number": self.number,
            "row": {name: _plain(value) for name, value in self.row.items()},
            "members": [{"name": m.name, "field": m.field, "offset": m.offset, "size": m.size} for m in self.members],
        }

    def lines(self) -> list[str]:
        """Text for people; whatever came from users is safe for a terminal."""
        number = "" if self.number is None else f", sample {self.number:,}"
        head = f"{plain(str(self.row['key']))}: {self.shard}, row {self.position:,}{number}"
        values = [[f"  {plain(name)}", plain(_shown(value))] for name, value in self.row.items()]
        files = [[f"  {m.name}", f"{m.size:,} bytes", f"at {m.offset:,}"] for m in self.members]
        return [head, *aligned(values, left=2), *(["files", *aligned(files)] if files else [])]


def find_sample(root: Path, key_or_number: str, split: str | None = None) -> SampleView:
    """Looks up an item by its key or, if there is none of that key, by its number among the samples.

    Args:
        key_or_number: a key, also of an item that failed; or the number of a sample, counted from 0 over all splits
            in the order of the manifest. A number has no leading zeros: ``000000012`` is a key and nothing else.
        split: look, and count, in this split only.

    Raises:
        UsageError: no such split, key or number.
        StorageError: there is no dataset at ``root``, or only an unfinished one.
        DamagedError: the manifest, an index or a parquet file is not what a build writes.
    """
    manifest = Manifest.read(root)
    if split is not None and split not in manifest.splits:
        raise UsageError(f"no split {split!r}", where=root, todo=f"There are: {', '.join(manifest.splits)}.")
    splits = list(manifest.splits) if split is None else [split]
    indexes = {name: _open_index(root, manifest, name) for name in splits}
    view = _by_key(root, manifest, indexes, key_or_number)
    if view is None and _NUMBER.fullmatch(key_or_number):
        view = _by_number(root, manifest, indexes, key_or_number)
    if view is None:
        raise UsageError(f"no sample {key_or_number!r}", where=root, todo=_hint(indexes))
    return view


def _hint(indexes: dict[str, SplitIndex]) -> str:
    total = sum(map(len, indexes.values()))
    if not total:
        return "There are no samples here."
    first = next(found for found in indexes.values() if len(found)).keys(np.array([0]))[0]
    return f"Keys look like {first!r}; numbers go from 0 to {total - 1:,}."


def _open_index(root: Path, manifest: Manifest, split: str) -> SplitIndex:
    path = layout.index_path(root, split)
    if not layout.is_own_file(path.name) or path.parent != root:
        raise DamagedError(f"an impossible split {split!r}", where=root / layout.MANIFEST)
    found = SplitIndex(path, schema(tuple(manifest.fields), manifest.label))
    if len(found) != manifest.splits[split].samples:
        raise DamagedError(f"lists {len(found):,} samples, the manifest more or fewer", where=path, todo=_TODO)
    return found


def _by_key(root: Path, manifest: Manifest, indexes: dict[str, SplitIndex], key: str) -> SampleView | None:
    for split, found in indexes.items():
        number = found.find(key)
        if number is not None:
            return _at(root, manifest, indexes, split, number)
    for split in indexes:
        for shard, position in _failed_rows(root, manifest, split, key):
            return _view(root, manifest, split, shard, position, None)
    return None


def _failed_rows(root: Path, manifest: Manifest, split: str, key: str) -> Iterator[tuple[str, int]]:
    """(shard, row) of every row with this key, wherever a split has items without a sample."""
    info = manifest.splits[split]
    for shard in info.shards if info.items > info.samples else ():
        keys = metadata.read(_parquet(root, manifest, shard.name), ["key"])["key"].to_pylist()
        if key in keys:
            yield shard.name, keys.index(key)


def _by_number(root: Path, manifest: Manifest, indexes: dict[str, SplitIndex], text: str) -> SampleView | None:
    number = int(text)
    for split, found in indexes.items():
        if number < len(found):
            return _at(root, manifest, indexes, split, number)
        number -= len(found)
    return None


def _at(root: Path, manifest: Manifest, indexes: dict[str, SplitIndex], split: str, number: int) -> SampleView:
    shards, positions = indexes[split].places(np.array([number]))
    before = 0
    for name, info in manifest.splits.items():
        if name == split:
            break
        before += info.samples
    if not 0 <= shards[0] < len(manifest.splits[split].shards):
        raise DamagedError("names a shard that is not there", where=layout.index_path(root, split), todo=_TODO)
    shard = manifest.splits[split].shards[int(shards[0])].name
    return _view(root, manifest, split, shard, int(positions[0]), before + number)


def _view(root: Path, manifest: Manifest, split: str, shard: str, position: int, number: int | None) -> SampleView:
    path = _parquet(root, manifest, shard)
    rows = metadata.read(path).slice(position, 1).to_pylist()
    if not rows:
        raise DamagedError(f"has no row {position:,}", where=path, todo=_TODO)
    members, foreign = [], manifest.foreign is not None
    for field in sorted(manifest.fields):
        offset, length, key = rows[0].get(f"{field}_offset"), rows[0].get(f"{field}_size"), rows[0].get("key")
        if offset is None and length is None:
            continue
        placed = isinstance(offset, int) and isinstance(length, int) and offset >= BLOCK and 0 <= length <= MAX_MEMBER
        named = isinstance(key, str) and is_key(key) and is_field(field) and len(f"{key}.{field}") <= MAX_NAME
        if not placed or not (named or (foreign and isinstance(key, str))):
            raise DamagedError(f"row {position:,} is not that of a sample", where=path, todo=_TODO)
        # A key from elsewhere may be no path, or a bad one.
        members.append(Member(f"{key if named else position}.{field}", field, offset, length))
    return SampleView(root, split, shard, position, number, rows[0], tuple(members), foreign)


def _parquet(root: Path, manifest: Manifest, shard: str) -> Path:
    path = layout.parquet_path(root, shard)
    if not layout.is_shard(shard, foreign=manifest.foreign is not None):
        raise DamagedError(f"an impossible shard {shard!r}", where=root / layout.MANIFEST)
    return path


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
