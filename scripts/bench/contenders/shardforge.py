"""This project, with its defaults but for the size of shards.

Imported here, as the time of every contender begins after its imports; worker processes import within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scripts.bench.work import QUALITY, SIZE, sources
from shardforge import build as build_dataset
from shardforge import open as open_dataset


def build(source: Path, out: Path, workers: int) -> None:
    # A shard is one worker's work; small sets fit into one of the default size. Four for each worker share it evenly.
    samples = max(1, len(sources(source)) // (4 * workers))
    build_dataset(source, out, size=SIZE, quality=QUALITY, workers=workers, shard_samples=samples, quiet=True)


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    rows = open_dataset(out).metadata.select(["source", "jpg_offset", "jpg_size", "shard"])
    for row in rows.to_pylist():
        with open(out / f"{row['shard']}.tar", "rb") as tar:
            tar.seek(row["jpg_offset"])
            yield Path(row["source"]).stem, tar.read(row["jpg_size"])
