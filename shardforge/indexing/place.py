"""Where the index of foreign tars is written, and what may stand there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.indexing.tars import FoundTar
from shardforge.shards import layout
from shardforge.shards.manifest import Manifest
from shardforge.shards.sidecars import remove_sidecars

WORK = ".indexing"
"""Folder for what is known so far; only while indexing runs or waits to be resumed."""

_OURS = ["key", "shard", "position"]
_TODO = "Use --out to write the index into another folder."


def earlier_index(out: Path) -> Manifest | None:
    """The manifest of an earlier index.

    Raises:
        UsageError: what is there is something else.
    """
    if (out / layout.STAGING).exists():
        raise UsageError("holds an unfinished build", where=out, todo=_TODO)
    if not (out / layout.MANIFEST).exists():
        return None
    try:
        manifest = Manifest.read(out)
    except (DamagedError, StorageError) as error:
        raise UsageError(f"holds a {layout.MANIFEST} that is no sound manifest ({error.what})", where=out) from None
    if manifest.foreign is None:
        raise UsageError("is a dataset of shardforge already; it needs no index", where=out)
    return manifest


def is_current(out: Path, manifest: Manifest, tars: Sequence[FoundTar], recipe: Mapping[str, Any]) -> bool:
    """Whether an earlier index of the same options still fits: the same tars of the same sizes, none of them younger
    than the manifest, and every file there."""
    wanted = {(tar.split, tar.name, tar.size) for tar in tars}
    have = {(split, s.name, s.bytes) for split, info in manifest.splits.items() for s in info.shards}
    options = {name: value for name, value in manifest.recipe.items() if name in recipe}
    if wanted != have or options != recipe:
        return False
    made = (out / layout.MANIFEST).stat().st_mtime_ns
    files = [layout.index_path(out, split) for split in manifest.splits]
    files += [layout.parquet_path(out, tar.name) for tar in tars]
    there = all(path.is_file() for path in files)
    return there and all(
        tar.mtime_ns <= made and layout.tar_path(out, tar.name).resolve() == tar.path.resolve() for tar in tars
    )


def refuse_clashes(out: Path, folder: Path, tars: Sequence[FoundTar]) -> None:
    """Nothing that is not ours may be overwritten.

    Raises:
        UsageError: a file of the name that a parquet, index or link needs was not made by us.
    """
    for tar in tars:
        path = layout.parquet_path(out, tar.name)
        if path.exists() and not _is_ours(path):
            raise UsageError("is somebody else's and stands where the rows of a tar belong", where=path, todo=_TODO)
        link = layout.tar_path(out, tar.name)
        if not out.samefile(folder) and link.exists() and not link.is_symlink():
            raise UsageError("is a file and stands where a link to a tar belongs", where=link, todo=_TODO)
    for split in {tar.split for tar in tars}:
        path = layout.index_path(out, split)
        if path.exists() and not _is_index(path):
            raise UsageError("is somebody else's and stands where an index belongs", where=path, todo=_TODO)


def link_tars(out: Path, folder: Path, tars: Sequence[FoundTar]) -> None:
    """Links to the tars in another folder, so that they are found beside their rows.

    Raises:
        OSError: no links can be made there.
    """
    if out.samefile(folder):
        return
    for tar in tars:
        link = layout.tar_path(out, tar.name)
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink():
            link.unlink()
        link.symlink_to(tar.path.resolve())


def clear_earlier(out: Path, manifest: Manifest | None) -> None:
    """Removes an earlier index, but never a tar: the manifest first, so that nobody takes the rest for a dataset."""
    (out / layout.MANIFEST).unlink(missing_ok=True)
    if manifest is not None:
        remove_sidecars(out, manifest)
    for split, info in ({} if manifest is None else manifest.splits).items():
        layout.index_path(out, split).unlink(missing_ok=True)
        for shard in info.shards:
            if not layout.is_shard(shard.name, foreign=True):
                continue
            layout.parquet_path(out, shard.name).unlink(missing_ok=True)
            link = layout.tar_path(out, shard.name)
            if link.is_symlink() and not link.exists():
                link.unlink()


def _is_ours(path: Path) -> bool:
    try:
        return pq.read_schema(path).names[: len(_OURS)] == _OURS  # type: ignore[no-any-return]
    except (OSError, pa.ArrowException):
        return False


def _is_index(path: Path) -> bool:
    try:
        with pa.memory_map(str(path)) as file:
            return {*_OURS} <= {*pa.ipc.open_file(file).schema.names}
    except (OSError, pa.ArrowException):
        return False
