"""The end of a build: indexes, card and build record, and the manifest last."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shardforge.compile.card import card
from shardforge.compile.staging import PlanRecord, ShardResult, Staging
from shardforge.shards import index, metadata
from shardforge.shards.layout import BUILD_RECORD, CARD, MANIFEST, index_path, parquet_path
from shardforge.shards.manifest import InputInfo, Manifest, ShardInfo, SplitInfo
from shardforge.shards.statistics import PixelStatistics, merge
from shardforge.storage import sync_file, write_durably


def commit(
    out: Path,
    staging: Staging,
    record: PlanRecord,
    results: Mapping[str, ShardResult],
    build_record: Mapping[str, Any],
) -> Manifest:
    """Publishes a dataset whose shards are all there.

    Args:
        results: shard name → result, one for every shard of the plan.
        build_record: how and when it was built; no part of the dataset's identity.
    """
    splits: dict[str, SplitInfo] = {}
    for split in dict.fromkeys(shard.split for shard in record.shards):
        names = [shard.name for shard in record.shards if shard.split == split]
        splits[split] = _finish_split(out, split, record, [results[name] for name in names])
    manifest = Manifest(
        recipe=record.recipe,
        seed=record.recipe["seed"],
        fields=record.fields,
        label=record.label,
        channels=record.channels,
        classes=record.classes,
        inputs=InputInfo(record.items, record.inputs),
        splits=splits,
        groups={split: tuple(digests) for split, digests in record.groups.items()},
        privacy=record.privacy,
    ).with_fingerprint()
    write_durably(out / CARD, card(manifest).encode("utf-8"))
    write_durably(out / BUILD_RECORD, json.dumps(build_record, indent=1, sort_keys=True).encode() + b"\n")
    write_durably(out / MANIFEST, manifest.to_json())
    shutil.rmtree(staging.folder, ignore_errors=True)
    return manifest


def _finish_split(out: Path, split: str, record: PlanRecord, results: Sequence[ShardResult]) -> SplitInfo:
    target = index.schema(list(record.fields), record.label)
    columns = index.columns(target)
    parts = (
        index.rows(number, metadata.read(parquet_path(out, result.name), columns), target)
        for number, result in enumerate(results)
    )
    path = index_path(out, split)
    index.write(path, parts, target)
    sync_file(path)
    with open(path, "rb") as file:
        index_sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    histograms = (np.array(result.histogram, np.int64) for result in results)
    return SplitInfo(
        samples=sum(result.samples for result in results),
        failed=sum(result.failed for result in results),
        filtered=sum(result.filtered for result in results),
        skipped=sum(result.skipped for result in results),
        bytes=sum(result.bytes for result in results),
        index_sha256=index_sha256,
        shards=tuple(
            ShardInfo(result.name, result.samples, result.bytes, result.sha256, result.parquet_sha256)
            for result in results
        ),
        stats=PixelStatistics.of(merge(histograms, record.channels, record.depth)),
    )
