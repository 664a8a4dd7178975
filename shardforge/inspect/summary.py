"""What is in a dataset: ``summarise``, from its manifest and parquet files alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.errors import DamagedError, StorageError
from shardforge.inspect.summary_text import summary_lines
from shardforge.inspect.tally import COLUMNS, Problem, Sizes, Tally, describe_sizes
from shardforge.shards import layout, metadata
from shardforge.shards.manifest import Manifest, SplitInfo


@dataclass(frozen=True)
class SplitSummary:
    """One split.

    Attributes:
        samples, failed, filtered, skipped: items, by what became of them.
        bytes: of its tars.
        mean, std: of the stored pixels per channel, in units of the full range; None without pixels.
    """

    samples: int
    failed: int
    filtered: int
    skipped: int
    shards: int
    bytes: int
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None

    @property
    def mean_shard_bytes(self) -> int:
        """Mean size of a tar, rounded."""
        return round(self.bytes / self.shards) if self.shards else 0


@dataclass(frozen=True)
class Summary:
    """What is in a dataset.

    Attributes:
        path: the dataset's folder, as it was given.
        recipe: as the manifest holds it, complete.
        fields: member name → kind; a kind ends in ``?`` where samples may lack the member.
        label_kind: ``class``, ``multi``, ``number`` or ``none``; ``label_size`` numbers make one regression label.
        splits: in the order of the manifest, which is that of sample numbers.
        classes: class name → split → samples, by class id; classes without samples included.
        sizes, original_sizes: of the stored and the source images, in pixels.
        formats: format of the source image → samples.
        problems: why items are no samples.
        flags: what was noticed → samples.
    """

    path: str
    format: str
    fingerprint: str
    recipe: Mapping[str, Any]
    seed: int
    fields: Mapping[str, str]
    channels: int
    label_kind: str
    label_size: int
    splits: Mapping[str, SplitSummary]
    classes: Mapping[str, Mapping[str, int]]
    sizes: Sizes | None
    original_sizes: Sizes | None
    formats: Mapping[str, int]
    problems: tuple[Problem, ...]
    flags: Mapping[str, int]

    @property
    def samples(self) -> int:
        """Samples of all splits."""
        return sum(split.samples for split in self.splits.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        plain = asdict(self)
        for name, split in self.splits.items():
            plain["splits"][name]["mean_shard_bytes"] = split.mean_shard_bytes
        return {**plain, "samples": self.samples}

    def lines(self) -> list[str]:
        """Text for people; whatever came from users is safe for a terminal."""
        return summary_lines(self)


def summarise(root: Path) -> Summary:
    """Describes a dataset, one shard's rows in memory at a time. No tar is opened.

    Raises:
        StorageError: there is no dataset at ``root``, or only an unfinished one.
        DamagedError: the manifest or a parquet file is not what a build writes.
    """
    manifest = Manifest.read(root)
    tally = Tally()
    for name, split in manifest.splits.items():
        for shard in split.shards:
            _add_shard(tally, root, name, shard.name, foreign=manifest.foreign is not None)
    names = sorted(manifest.classes, key=manifest.classes.__getitem__)
    return Summary(
        path=str(root),
        format=manifest.format,
        fingerprint=manifest.fingerprint,
        recipe=manifest.recipe,
        seed=manifest.seed,
        fields={name: info.kind + "?" * info.optional for name, info in manifest.fields.items()},
        channels=manifest.channels,
        label_kind=manifest.label.kind,
        label_size=manifest.label.size,
        splits={name: _split(info) for name, info in manifest.splits.items()},
        classes={name: {split: tally.class_count(name, split) for split in manifest.splits} for name in names},
        sizes=describe_sizes(tally.sizes),
        original_sizes=describe_sizes(tally.original_sizes),
        formats=dict(tally.formats.most_common()),
        problems=tally.problems(),
        flags=dict(tally.flags.most_common()),
    )


def _split(info: SplitInfo) -> SplitSummary:
    stats = info.stats
    return SplitSummary(
        info.samples,
        info.failed,
        info.filtered,
        info.skipped,
        len(info.shards),
        info.bytes,
        None if stats is None else stats.mean,
        None if stats is None else stats.std,
    )


def _add_shard(tally: Tally, root: Path, split: str, shard: str, *, foreign: bool) -> None:
    path = layout.parquet_path(root, shard)
    if not layout.is_shard(shard, foreign=foreign):
        raise DamagedError(f"the manifest names an impossible shard {shard!r}", where=root / layout.MANIFEST)
    if not path.is_file():
        raise StorageError("is missing", where=path, todo="--verify names everything that is wrong.")
    try:
        tally.add(split, metadata.read(path, COLUMNS))
    except (pa.ArrowException, KeyError, TypeError, ValueError) as error:
        what = f"its rows are not those of a dataset ({str(error).splitlines()[0]})"
        raise DamagedError(what, where=path, todo="--verify names everything that is wrong.") from None
