"""One task = one shard: read, decode, place, encode, write, publish. Runs inside an expendable worker process."""

from __future__ import annotations

import hashlib
import resource
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import imagecodecs
import numpy as np

from shardforge.compile.identity_key import load_or_make
from shardforge.compile.journal import Journal
from shardforge.compile.planned_item import PlannedItem, SampleSettings
from shardforge.compile.sample import Sample, make_sample
from shardforge.compile.shard_task import Marker, ShardTask
from shardforge.compile.staging import PlanRecord, ShardResult, Staging, parquet_schema, planned_items
from shardforge.shards import metadata
from shardforge.shards.catalogue import Reason, Status
from shardforge.shards.layout import parquet_path, tar_path
from shardforge.shards.metadata import Outcome
from shardforge.shards.tar import TarWriter
from shardforge.storage import sync_file, sync_folder

FailureReport = Callable[[str, Reason, str], None]
"""Called with source, reason and detail of an item that failed."""


def run_shard_task(task: ShardTask, marker: Marker, report: FailureReport) -> ShardResult:
    """Makes and publishes one shard.

    Raises:
        MemoryError: the item that ``marker`` names needs too much.
        OSError: the shard cannot be written.
    """
    staging = Staging(Path(task.staging))
    path = staging.folder / f"{task.shard}.tar"
    if task.resume and task.out is not None:
        # The worker before this one may have died after publishing, or in the middle of it.
        done = staging.read_done(task.shard, Path(task.out))
        if done is not None:
            return done
    record = staging.read_plan()
    make = _maker(record.settings, task)
    batch = staging.batch(task.batch)
    items = planned_items(record, batch)
    journal = Journal(
        staging.folder, task.shard, record.channels, depth=record.depth, keep=task.resume and path.exists()
    )
    writer = TarWriter(path, keep=journal.tar_size, crc32=imagecodecs.deflate_crc32)
    failed = sum(outcome.status is Status.FAILED for outcome in journal.outcomes()) if journal.count else 0
    read = 0
    for position in range(journal.count, len(items)):
        marker.write(position, journal.count, failed, read, writer.size)
        allow_cpu_seconds(task.cpu_seconds)
        doom = (task.doomed or {}).get(position)
        sample = make(items[position]) if doom is None else _doomed(doom)
        outcome = _add(writer, items[position], sample)
        journal.append(outcome, sample.histogram, writer.size)
        read += outcome.source_bytes or 0
        if outcome.status is Status.FAILED and outcome.reason is not None:
            failed += 1
            report(items[position].source, outcome.reason, sample.detail)
    marker.write(-1, journal.count, failed, read, writer.size)
    return _publish(task, staging, record, writer, journal)


def allow_cpu_seconds(seconds: int) -> None:
    """Lets this process use so much more CPU time; beyond it the kernel ends the process (SIGXCPU)."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(usage.ru_utime + usage.ru_stime) + seconds + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _maker(settings: SampleSettings, task: ShardTask) -> Callable[[PlannedItem], Sample]:
    if settings.recipe.kind != "dicom":
        return partial(make_sample, settings=settings, root=Path(task.source))
    from shardforge.compile.dicom.sample import DicomSampleMaker

    key = None if task.key_file is None else load_or_make(Path(task.key_file)).key
    return DicomSampleMaker(settings, Path(task.source), key)


def _doomed(reason: Reason) -> Sample:
    return Sample(Outcome(Status.FAILED, reason), detail="the process died on this item twice")


def _add(writer: TarWriter, item: PlannedItem, sample: Sample) -> Outcome:
    if sample.outcome.status is not Status.SUCCESS:
        return sample.outcome
    assert item.key is not None
    written = writer.add(item.key, sample.members)
    return sample.outcome.but(extents=written.extents, sample_crc32=written.crc32)


def _reasons(outcomes: Sequence[Outcome], status: Status) -> dict[str, int]:
    return dict(Counter(str(outcome.reason) for outcome in outcomes if outcome.status is status))


def _publish(
    task: ShardTask, staging: Staging, record: PlanRecord, writer: TarWriter, journal: Journal
) -> ShardResult:
    sha256 = writer.finish()
    outcomes = journal.outcomes()
    batch = staging.batch(task.batch)
    rows = staging.folder / f"{task.shard}.parquet"
    target = parquet_schema(record, batch)
    metadata.write(rows, metadata.table(batch, outcomes, target, list(record.annotations.values())))
    statuses = Counter(outcome.status for outcome in outcomes)
    result = ShardResult(
        name=task.shard,
        samples=statuses[Status.SUCCESS],
        failed=statuses[Status.FAILED],
        filtered=statuses[Status.FILTERED],
        skipped=statuses[Status.SKIPPED],
        bytes=writer.size,
        sha256=sha256,
        parquet_bytes=rows.stat().st_size,
        parquet_sha256=hashlib.sha256(rows.read_bytes()).hexdigest(),
        source_bytes=sum(outcome.source_bytes or 0 for outcome in outcomes),
        reasons=_reasons(outcomes, Status.FAILED),
        filtered_reasons=_reasons(outcomes, Status.FILTERED),
        histogram=np.asarray(journal.histogram()).tolist(),
    )
    tar = staging.folder / f"{task.shard}.tar"
    if task.out is None:
        tar.unlink()
        rows.unlink()
    else:
        sync_file(rows)
        tar.replace(tar_path(Path(task.out), task.shard))
        rows.replace(parquet_path(Path(task.out), task.shard))
        sync_folder(Path(task.out))
        staging.write_done(result)
    journal.remove()
    return result
