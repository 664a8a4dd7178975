"""``build``: plan, run the shard tasks, commit; resume or refuse what an earlier build left."""

from __future__ import annotations

import math
import platform
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Unpack

from shardforge.compile import plan
from shardforge.compile.commit import commit
from shardforge.compile.dicom.checks import count_checks
from shardforge.compile.dicom.overlapping_masks import warn_of_overlapping_masks
from shardforge.compile.duplicates import Duplicates, find_duplicates
from shardforge.compile.engines.local import Failure, Progress, WorkerPool
from shardforge.compile.existing import find_existing
from shardforge.compile.listing import Listing, list_source
from shardforge.compile.options import BuildOptions, resolve
from shardforge.compile.plan import Draft
from shardforge.compile.progress import Console, Reporter, Silent
from shardforge.compile.reencoded import warn_of_reencoded
from shardforge.compile.repeated_pixels import warn_of_repeated_pixels
from shardforge.compile.report import (
    BuildReport,
    SplitReport,
    count_unknown,
    describe_plan,
    empty_splits,
    split_reports,
)
from shardforge.compile.series_table import series_records
from shardforge.compile.shard_task import ShardTask
from shardforge.compile.staging import PlanRecord, ShardResult, Staging
from shardforge.compile.tolerance import allowed_failures, check_failures
from shardforge.compile.trial import measure_sample
from shardforge.compile.versions import library_versions
from shardforge.errors import UsageError
from shardforge.machine import inspect_machine
from shardforge.recipe import Recipe, RunOptions
from shardforge.shards import metadata
from shardforge.shards.catalogue import FILTERS, Reason, Status
from shardforge.shards.layout import MANIFEST, is_own_file, parquet_path
from shardforge.shards.manifest import Manifest
from shardforge.shards.sidecars import check_kinds, write_sidecars
from shardforge.sources.item import UnknownFile
from shardforge.sources.scan import Scan
from shardforge.storage import FolderLock, explain


def build(
    src: str | Path,
    out: str | Path,
    recipe: str | Path | Recipe | None = None,
    *,
    dry_run: bool = False,
    quiet: bool = False,
    sidecars: Sequence[str] = (),
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """Compiles raw data into a dataset, or finishes a build that was interrupted.

    Args:
        src: folder of raw files.
        out: folder of the dataset; made when absent.
        recipe: a YAML file, the name of a recipe that comes with the package, or a Recipe.
        dry_run: plan only, write nothing.
        quiet: say nothing on standard error.
        sidecars: ``wids``, ``dali``, ``timm``: small files for these readers, also for a dataset that is up to date.
        options: override the recipe; see :class:`~shardforge.compile.options.BuildOptions`.

    Raises:
        UsageError: a request that cannot be met, or a dataset in ``out`` that was made otherwise.
        StorageError: something cannot be read or written.
        TooManyFailuresError: more items failed than ``max_errors`` allows; the same call resumes.
    """
    reporter: Reporter = Silent() if quiet else Console()
    resolved, kinds = resolve(recipe, options), check_kinds(sidecars)
    source, target = Path(src), Path(out)
    try:
        report = _build(source, target, resolved, reporter, dry_run)
        if kinds and not dry_run:
            write_sidecars(target, Manifest.read(target), kinds)
        return report
    except OSError as error:
        raise explain(error, target) from None
    finally:
        reporter.finish()


def _build(source: Path, out: Path, recipe: Recipe, reporter: Reporter, dry_run: bool) -> BuildReport:
    began = time.monotonic()
    _check_folders(source, out)
    listing = list_source(source, out, recipe, reporter)
    found, recipe, key_file = listing.scan, listing.recipe, listing.key_file
    duplicates = _duplicates(source, found, recipe, reporter)
    draft = plan.draft(found, recipe, duplicates, listing.conceal, listing.privacy)
    for line in describe_plan(draft, found.unknown, listing.series):
        reporter.say(line)
    if dry_run:
        return _dry_run(source, out, draft, found, key_file, reporter, began)
    listing.write_private_map((source, out))
    staging = Staging.of(out)
    if (out / MANIFEST).exists() and not staging.folder.exists() and not recipe.run.overwrite:
        # Before anything is written: a finished dataset may be read-only.
        existing = find_existing(out, draft, found.items, listing.digest, reporter)
        if isinstance(existing, Manifest):
            return _up_to_date(out, draft, found, existing, began)
    with _held(out, reporter) as lock:
        existing = find_existing(out, draft, found.items, listing.digest, reporter)
        if isinstance(existing, Manifest) and not recipe.run.overwrite:
            return _up_to_date(out, draft, found, existing, began)
        with closing(_pool(recipe.run, staging, lock)) as pool:
            if isinstance(existing, PlanRecord):
                record = existing
                staging.clear_unfinished()
            else:
                _clear(out, staging)
                reporter.say("measuring how large samples come out")
                shards = plan.cut(draft, measure_sample(source, draft, staging, pool, recipe.run, key_file))
                record = staging.write_plan(draft, shards, library_versions())
            results, resumed = _run(source, out, staging, record, pool, recipe.run, key_file, reporter)
        made = record.shards_by_split()
        noticed = (
            *warn_of_repeated_pixels(out, made),
            *warn_of_reencoded(out, made, recipe),
            *warn_of_overlapping_masks(out, record),
        )
        for line in noticed:
            reporter.say(f"warning: {line}")
        draft = replace(draft, warnings=(*draft.warnings, *noticed))
        checks = count_checks(out, (shard.name for shard in record.shards), recipe)
        seconds = time.monotonic() - began
        about = _build_record(listing, draft, results, seconds) | ({"checks": checks.record()} if checks else {})
        manifest = commit(out, staging, record, results, about)
    report = _report("complete", out, draft, found, split_reports(manifest), results, began, resumed)
    return replace(report, checks=checks)


def _duplicates(source: Path, found: Scan, recipe: Recipe, reporter: Reporter) -> Duplicates:
    if recipe.dedup == "none":
        return Duplicates()
    return find_duplicates(source, found.items, recipe.limits.source_bytes, reporter)


def _check_folders(source: Path, out: Path) -> None:
    if not source.is_dir():
        archive = source.is_file() and source.suffix.lower() == ".zip"
        todo = "Name the folder that it lies in: zip archives of DICOM files are read in place." if archive else None
        raise UsageError("is not a folder" if source.exists() else "does not exist", where=source, todo=todo)
    inner, outer = out.resolve(), source.resolve()
    if inner == outer or outer in inner.parents:
        raise UsageError("the output folder lies inside the source folder", where=out, todo="Choose another place.")
    if inner in outer.parents:
        raise UsageError("the source folder lies inside the output folder", where=out, todo="Choose another place.")
    if out.exists() and not out.is_dir():
        raise UsageError("exists and is not a folder", where=out)


@contextmanager
def _held(out: Path, reporter: Reporter) -> Iterator[int]:
    """Holds OUT against other builds; yields the lock's file descriptor."""
    fresh = not out.exists()
    lock = FolderLock(out)
    if not lock.supported:
        reporter.say("warning: this file system has no locks; no other build may run here at the same time")
    staging = Staging.of(out)
    try:
        # Its plan has paths of the source, which may name patients.
        staging.folder.mkdir(mode=0o700, exist_ok=True)
        yield lock.descriptor
    finally:
        if not staging.has_plan or (out / MANIFEST).exists():
            shutil.rmtree(staging.folder, ignore_errors=True)
            if fresh and not any(out.iterdir()):
                out.rmdir()
        lock.release()


def _pool(run: RunOptions, staging: Staging, lock: int) -> WorkerPool:
    return WorkerPool(_workers(run), staging.folder, run.memory, lock)


def _workers(run: RunOptions) -> int:
    """Worker processes: as asked for, or one for each processor that this process may really use."""
    machine = inspect_machine()
    quota = machine.cpus if machine.cpu_quota is None else math.ceil(machine.cpu_quota)
    return run.workers or max(1, min(machine.cpus, quota))


def _clear(out: Path, staging: Staging) -> None:
    """Removes what an earlier build left: the manifest first, so that nobody takes the rest for a dataset."""
    (out / MANIFEST).unlink(missing_ok=True)
    for path in out.iterdir():
        if is_own_file(path.name) and path.is_file():
            path.unlink()
    for path in staging.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _run(
    source: Path,
    out: Path,
    staging: Staging,
    record: PlanRecord,
    pool: WorkerPool,
    run: RunOptions,
    key_file: str | None,
    reporter: Reporter,
) -> tuple[dict[str, ShardResult], int]:
    """Runs the tasks that are not done. Returns all results, and the number of items done before."""
    results = {shard.name: staging.read_done(shard.name, out) for shard in record.shards}
    finished = {name: result for name, result in results.items() if result is not None}
    where = (str(staging.folder.resolve()), str(source.resolve()), str(out.resolve()))
    tasks = [
        ShardTask(where[0], number, shard.name, where[1], where[2], run.cpu_seconds, key_file=key_file)
        for number, shard in enumerate(record.shards)
        if shard.name not in finished
    ]
    resumed = sum(map(_items, finished.values()))
    allowed = allowed_failures(run.max_errors, record.items)
    if finished:
        reporter.say(f"resuming: {resumed:,} items in {len(finished):,} of {len(record.shards):,} shards are done")
    check_failures(finished.values(), 0, allowed, record.items)
    reporter.start(record.items, resumed)
    read = 0
    for event in pool.run(tasks):
        if isinstance(event, Failure):
            reporter.failure(event.source, event.reason, event.detail)
        elif isinstance(event, ShardResult):
            finished[event.name] = event
            read += event.source_bytes
        elif isinstance(event, Progress):
            done, failed = sum(map(_items, finished.values())), sum(result.failed for result in finished.values())
            reporter.update(done + event.done, failed + event.failed, read + event.read)
            check_failures(finished.values(), event.failed, allowed, record.items)
    reporter.finish()
    return finished, resumed


def _items(result: ShardResult) -> int:
    return result.samples + result.failed + result.filtered + result.skipped


def _dry_run(
    source: Path, out: Path, draft: Draft, found: Scan, key_file: str | None, reporter: Reporter, began: float
) -> BuildReport:
    with tempfile.TemporaryDirectory(prefix="shardforge-") as folder:
        staging = Staging(Path(folder))
        with closing(WorkerPool(1, staging.folder, draft.recipe.run.memory)) as pool:
            sample_bytes = measure_sample(source, draft, staging, pool, draft.recipe.run, key_file)
    shards = Counter(shard.split for shard in plan.cut(draft, sample_bytes))
    splits = {
        name: SplitReport(items=items, shards=shards[name], bytes=items * sample_bytes)
        for name, items in draft.splits.items()
    }
    for name, split in splits.items():
        reporter.say(f"{name}: {split.items:,} items, {split.shards:,} shards")
    total = sum(split.bytes for split in splits.values())
    problems = draft.rows["problem"].drop_null().value_counts().to_pylist()
    known = {Reason(entry["values"]): entry["counts"] for entry in problems}
    return replace(
        _report("planned", out, draft, found, splits, {}, began, 0),
        bytes=total,
        reasons={str(reason): count for reason, count in known.items() if reason not in FILTERS},
        filtered_reasons={str(reason): count for reason, count in known.items() if reason in FILTERS},
    )


def _up_to_date(out: Path, draft: Draft, found: Scan, manifest: Manifest, began: float) -> BuildReport:
    failed: Counter[str] = Counter()
    filtered: Counter[str] = Counter()
    for split in manifest.splits.values():
        for shard in split.shards if split.failed or split.filtered else ():
            rows = metadata.read(parquet_path(out, shard.name), ["status", "reason"]).to_pylist()
            failed.update(row["reason"] for row in rows if row["status"] == Status.FAILED)
            filtered.update(row["reason"] for row in rows if row["status"] == Status.FILTERED)
    report = _report("up to date", out, draft, found, split_reports(manifest), {}, began, 0)
    return replace(report, reasons=dict(failed.most_common()), filtered_reasons=dict(filtered.most_common()))


def _report(
    status: Any,
    out: Path,
    draft: Draft,
    found: Scan,
    splits: dict[str, SplitReport],
    results: Mapping[str, ShardResult],
    began: float,
    resumed: int,
) -> BuildReport:
    return BuildReport(
        status=status,
        out=str(out),
        layout=draft.layout,
        items=draft.rows.num_rows,
        splits=splits,
        reasons=_most_common(result.reasons for result in results.values()),
        filtered_reasons=_most_common(result.filtered_reasons for result in results.values()),
        balance=draft.balance,
        unknown=count_unknown(found.unknown),
        bytes=sum(split.bytes for split in splits.values()),
        resumed=resumed,
        seconds=round(time.monotonic() - began, 3),
        notes=draft.notes,
        warnings=(*draft.warnings, *(() if status == "planned" else empty_splits(splits))),
    )


def _most_common(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum(map(Counter, counts), Counter[str]()).most_common())


def _build_record(
    listing: Listing, draft: Draft, results: Mapping[str, ShardResult], seconds: float
) -> dict[str, Any]:
    read = sum(result.source_bytes for result in results.values())
    return {
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 3),
        "host": platform.node(),
        "python": platform.python_version(),
        "workers": _workers(listing.recipe.run),
        "versions": library_versions(),
        "source_bytes": read,
        "samples_per_second": round(draft.rows.num_rows / max(seconds, 1e-9), 1),
        "input_times": draft.inputs.times,
        "unknown_files": [asdict(file) for file in _readable(listing.scan.unknown)],
        "series": series_records(listing.series),
        "warnings": list(draft.warnings),
    }


def _readable(unknown: Sequence[UnknownFile]) -> Iterator[UnknownFile]:
    for file in unknown:
        yield replace(file, path=file.path.encode("utf-8", "backslashreplace").decode())
