"""Whether a manifest makes sense by itself."""

from __future__ import annotations

import numpy as np

from shardforge.shards.layout import SPLIT_NAME, is_shard, shard_name
from shardforge.shards.manifest import Manifest, SplitInfo
from shardforge.shards.statistics import LEVELS, PixelStatistics
from shardforge.shards.tar import is_field


def manifest_problems(manifest: Manifest) -> list[str]:
    """Everything in a manifest that contradicts the rest of it."""
    problems = list(_field_problems(manifest))
    if manifest.fingerprint != manifest.compute_fingerprint():
        problems.append("the fingerprint is not that of the shards it lists")
    if manifest.items != manifest.inputs.items:
        problems.append(f"the splits account for {manifest.items:,} of {manifest.inputs.items:,} planned items")
    if sorted(manifest.classes.values()) != list(range(len(manifest.classes))):
        problems.append("the class ids are not 0, 1, 2, …")
    names = [shard.name for split in manifest.splits.values() for shard in split.shards]
    if len(set(names)) != len(names):
        problems.append("a shard is listed twice")
    for name, split in manifest.splits.items():
        problems += [f"split {name!r}: {problem}" for problem in _split_problems(name, split, manifest)]
    return problems


def names_usable(manifest: Manifest) -> bool:
    """Whether the fields are such that files can be held against them."""
    images = [name for name, info in manifest.fields.items() if info.kind in ("image", "volume")]
    return len(images) == 1 and all(is_field(name) for name in manifest.fields)


def _field_problems(manifest: Manifest) -> list[str]:
    kinds = [info.kind for info in manifest.fields.values()]
    problems = [f"illegal field {name!r}" for name in manifest.fields if not is_field(name)]
    images = kinds.count("image") + kinds.count("volume")
    if images != 1:
        problems.append(f"{images} image fields where one belongs")
    if kinds.count("class") > 1 or ("class" in kinds and manifest.label.kind != "class"):
        problems.append("a class field that does not fit the kind of label")
    return problems


def _split_problems(name: str, split: SplitInfo, manifest: Manifest) -> list[str]:
    problems = []
    if SPLIT_NAME.fullmatch(name) is None:
        problems.append("not a legal name")
    for number, shard in enumerate(split.shards):
        if manifest.foreign is not None:
            if not is_shard(shard.name, foreign=True):
                problems.append(f"lists {shard.name!r}, which is no path inside the dataset")
        elif shard.name != shard_name(name, number):
            problems.append(f"lists {shard.name!r} where {shard_name(name, number)} belongs")
    for what in ("samples", "bytes"):
        said, total = getattr(split, what), sum(getattr(shard, what) for shard in split.shards)
        if said != total:
            problems.append(f"says {said:,} {what}, its shards together {total:,}")
    return problems + ([] if split.stats is None else _stats_problems(split.stats, manifest.channels))


def _stats_problems(stats: PixelStatistics, channels: int) -> list[str]:
    rows = stats.histogram
    shaped = len(rows) == channels and all(len(row) == LEVELS and all(0 <= n < 2**63 for n in row) for row in rows)
    if not shaped or len({sum(row) for row in rows}) != 1:
        return ["the histogram has not the shape of the images"]
    if stats.sums is not None:
        if PixelStatistics.of_sums(rows, stats.sums) != stats:
            return ["mean and std are not those of the sums and the histogram"]
    elif PixelStatistics.of(np.array(rows, np.int64)) != stats:
        return ["mean and std are not those of the histogram"]
    return []
