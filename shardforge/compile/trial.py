"""A trial of a few items, to learn how large samples come out before the plan is cut into shards."""

from __future__ import annotations

import heapq
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.compile.engines.local import WorkerPool
from shardforge.compile.plan import Draft
from shardforge.compile.planned_item import PlannedShard
from shardforge.compile.shard_task import ShardTask
from shardforge.compile.split import keyed_hash
from shardforge.compile.staging import ShardResult, Staging
from shardforge.recipe import RunOptions
from shardforge.shards.tar import END_OF_ARCHIVE
from shardforge.sources.item import frame_name

_MOST, _FEWEST, _ENOUGH_BYTES = 24, 8, 16 << 20
"""Items that are encoded to learn how large samples come out: no more of them once so many bytes of source files are
read and a fair number has been seen, as the trial's work is thrown away. Sizes stand in the plan, so that the choice
is the same on every machine."""
_GUESS = 1 << 16
"""Bytes per sample when no trial item succeeds."""


def measure_sample(
    source: Path, draft: Draft, staging: Staging, pool: WorkerPool, run: RunOptions, key_file: str | None = None
) -> int:
    """Bytes an item takes in a tar, from a seeded trial of a few items in a worker process.

    Items that the plan knows to give no sample take none.
    """
    problems = draft.rows["problem"]
    chosen = choose_items(draft)
    if not chosen:
        return _GUESS
    trial = Staging(staging.folder / "trial")
    trial.folder.mkdir()
    # A part for each worker: none waits, and all have started when the real work begins. The sums are the same.
    parts = min(pool.workers, len(chosen))
    bounds = [len(chosen) * number // parts for number in range(parts + 1)]
    shards = [PlannedShard(f"trial-{n}", "trial", low, high) for n, (low, high) in enumerate(pairwise(bounds))]
    trial.write_plan(replace(draft, rows=draft.rows.take(pa.array(sorted(chosen)))), shards, {})
    where = (str(trial.folder.resolve()), str(source.resolve()))
    tasks = [
        ShardTask(where[0], n, shard.name, where[1], None, run.cpu_seconds, key_file=key_file)
        for n, shard in enumerate(shards)
    ]
    results = [event for event in pool.run(tasks) if isinstance(event, ShardResult)]
    shutil.rmtree(trial.folder)
    samples = sum(result.samples for result in results)
    sample = sum(result.bytes - len(END_OF_ARCHIVE) for result in results) // samples if samples else _GUESS
    return max(1, sample * int(problems.null_count) // len(problems))


def choose_items(draft: Draft) -> list[int]:
    """Row numbers of the items to try, in a seeded order: some that the plan knows nothing against."""
    rows = draft.rows.select(["files", "frame", "problem"]).to_pylist()
    # By path: a source's name may be a hash that depends on somebody's key.
    names = {i: frame_name(_main_path(row), row["frame"]) for i, row in enumerate(rows) if row["problem"] is None}
    seed = draft.recipe.seed
    likely = heapq.nsmallest(_MOST, names, key=lambda i: keyed_hash(seed, "trial", names[i]))
    read = accumulate(sum(file["size"] for file in draft.rows["files"][i].as_py()) for i in likely)
    return [
        i
        for place, (i, size) in enumerate(zip(likely, read, strict=True))
        if place < _FEWEST or size <= _ENOUGH_BYTES
    ]


def _main_path(row: Mapping[str, Any]) -> str:
    return next((os.fsdecode(file["path"]) for file in row["files"] if file["field"] == "image"), "")
