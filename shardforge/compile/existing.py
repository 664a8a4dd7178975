"""What an earlier build left in OUT: a finished dataset, an unfinished one, or somebody else's files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.compile.inputs import contents_differ, explain_difference, hash_file
from shardforge.compile.plan import Draft
from shardforge.compile.progress import Reporter
from shardforge.compile.staging import PlanRecord, Staging
from shardforge.compile.versions import library_versions
from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards import metadata
from shardforge.shards.layout import BUILD_RECORD, MANIFEST, STAGING, index_path, is_own_file, parquet_path, tar_path
from shardforge.shards.manifest import Manifest
from shardforge.sources.item import Item

_TODO = "Use --overwrite to start anew, or choose another output folder."
Digest = Callable[[str], str | None]
_RECORDED = ["source", "source_sha256", "sidecar_sha256"]


def find_existing(
    out: Path, draft: Draft, items: Sequence[Item], digest: Digest, reporter: Reporter
) -> Manifest | PlanRecord | None:
    """What can be kept: a finished dataset of the same plan, an unfinished build of it, or nothing.

    With ``overwrite``, what differs is no obstacle, but an unfinished build of the same plan is still resumed.

    Args:
        digest: of a source file at a path, as rows have it; None when it cannot be read.

    Raises:
        UsageError: what lies in OUT was made with another recipe or from other inputs, or is no dataset at all.
        StorageError: it was a dataset once, but is damaged or has lost files.
    """
    overwrite = draft.recipe.run.overwrite
    _refuse_foreign(out)
    try:
        if (out / MANIFEST).exists():
            manifest = Manifest.read(out)
            _compare_finished(out, manifest, draft, items, digest, reporter)
            return manifest
        if Staging.of(out).has_plan:
            record = Staging.of(out).read_plan()
            _compare_unfinished(out, record, draft, items, digest, reporter)
            return record
    except (UsageError, StorageError, DamagedError) as error:
        if overwrite:
            return None
        if isinstance(error, DamagedError):
            raise StorageError(error.what, where=error.where, todo=_TODO) from None
        raise
    foreign = [path.name for path in out.iterdir() if path.name != STAGING]
    if foreign and all(is_own_file(name) for name in foreign) and not overwrite:
        raise UsageError(f"holds a dataset that has lost its {MANIFEST}", where=out, todo=_TODO)
    if (foreign and not overwrite) or not all(is_own_file(name) for name in foreign):
        raise UsageError(
            f"is not empty and holds no dataset of shardforge ({sorted(foreign)[0]}, for one)",
            where=out,
            todo="Choose another output folder.",
        )
    return None


def _refuse_foreign(out: Path) -> None:
    """Tars that were only indexed belong to somebody else; not even ``overwrite`` may touch them."""
    try:
        foreign = Manifest.read(out).foreign
    except (StorageError, DamagedError):
        return
    if foreign is not None:
        raise UsageError("holds tars made elsewhere, with an index", where=out, todo="Choose another output folder.")


def _compare_finished(
    out: Path, manifest: Manifest, draft: Draft, items: Sequence[Item], digest: Digest, reporter: Reporter
) -> None:
    shards = [shard.name for split in manifest.splits.values() for shard in split.shards]
    _refuse_other_recipe(out, manifest.recipe, draft)
    _refuse_other_key(out, manifest.privacy, draft)
    if manifest.inputs.sha256 != draft.inputs.content:
        raise UsageError(_changed(explain_difference(_rows(out, shards), items)), where=out, todo=_TODO)
    _refuse_other_groups(out, manifest.groups, draft)
    _refuse_missing_files(out, manifest)
    if _recorded_times(out) != draft.inputs.times:
        _refuse_other_contents(out, shards, items, digest, reporter)


def _compare_unfinished(
    out: Path, record: PlanRecord, draft: Draft, items: Sequence[Item], digest: Digest, reporter: Reporter
) -> None:
    _refuse_other_recipe(out, record.recipe, draft)
    _refuse_other_key(out, record.privacy, draft)
    if record.inputs != draft.inputs.content:
        rows = Staging.of(out).rows()
        sizes = [
            next((f["size"] for f in files if f["field"] == "image"), None) for files in rows["files"].to_pylist()
        ]
        old = pa.table({"source": rows["source"], "source_bytes": pa.array(sizes, pa.int64())})
        raise UsageError(_changed(explain_difference(old, items)), where=out, todo=_TODO)
    _refuse_other_groups(out, record.groups, draft)
    if record.times != draft.inputs.times:
        done = [shard.name for shard in record.shards if Staging.of(out).read_done(shard.name, out) is not None]
        _refuse_other_contents(out, done, items, digest, reporter)
    if record.versions != library_versions():
        changed = sorted(set(record.versions.items()) ^ set(library_versions().items()))
        names = ", ".join(dict.fromkeys(name for name, _ in changed))
        reporter.say(f"warning: library versions differ from when this build began ({names}); bytes may differ too")


def _changed(what: str) -> str:
    return f"the inputs differ from those this was built from: {what}"


def _refuse_other_recipe(out: Path, old: Mapping[str, Any], draft: Draft) -> None:
    new = json.loads(json.dumps(draft.identity))
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    if names:
        told = ", ".join(f"{name} {json.dumps(old.get(name))} -> {json.dumps(new.get(name))}" for name in names)
        raise UsageError(f"was built with another recipe: {told}", where=out, todo=_TODO)


def _refuse_other_key(out: Path, old: Mapping[str, str], draft: Draft) -> None:
    if old != draft.privacy:
        raise UsageError(
            "was built with another identity key",
            where=out,
            todo="Name that one with --key-file; or start anew with --overwrite, or in another output folder.",
        )


def _refuse_other_groups(out: Path, old: Mapping[str, Sequence[str]], draft: Draft) -> None:
    if {split: list(groups) for split, groups in old.items()} != {s: list(g) for s, g in draft.groups.items()}:
        raise UsageError("was built with another frozen split", where=out, todo=_TODO)


def _refuse_missing_files(out: Path, manifest: Manifest) -> None:
    """Shards by their size, the small files by their digest; ``inspect --verify`` reads every byte."""
    for name, split in manifest.splits.items():
        digests = {index_path(out, name): split.index_sha256}
        digests |= {parquet_path(out, shard.name): shard.parquet_sha256 for shard in split.shards}
        sizes = {tar_path(out, shard.name): shard.bytes for shard in split.shards}
        for path in [*digests, *sizes]:
            if not path.is_file():
                raise StorageError("a file of the finished dataset is missing", where=path, todo=_TODO)
        for path in sizes:
            if path.stat().st_size != sizes[path]:
                raise StorageError("a shard of the finished dataset has another size", where=path, todo=_TODO)
        for path, digest in digests.items():
            if hash_file(path) != digest:
                raise StorageError("a file of the finished dataset is damaged", where=path, todo=_TODO)


def _refuse_other_contents(
    out: Path, shards: Sequence[str], items: Sequence[Item], digest: Digest, reporter: Reporter
) -> None:
    """Modification times differ while names and sizes agree: only the bytes themselves can tell."""
    reporter.say("modification times of inputs have changed; comparing their contents")
    by_source = {item.shown: item for item in items}
    rows = (row for shard in shards for row in metadata.read(parquet_path(out, shard), _RECORDED).to_pylist())
    for name in contents_differ(digest, rows, by_source):
        raise UsageError(_changed(f"the content of {name} has changed"), where=out, todo=_TODO)


def _rows(out: Path, shards: Sequence[str]) -> pa.Table:
    tables = [metadata.read(parquet_path(out, shard), ["source", "source_bytes"]) for shard in shards]
    return pa.concat_tables(tables) if tables else pa.table({"source": [], "source_bytes": []})


def _recorded_times(out: Path) -> str | None:
    try:
        found = json.loads((out / BUILD_RECORD).read_bytes()).get("input_times")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None
