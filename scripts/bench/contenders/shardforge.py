"""This project, with its defaults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import shardforge
from scripts.bench.work import QUALITY, SIZE


def build(source: Path, out: Path, workers: int) -> None:
    shardforge.build(source, out, size=SIZE, quality=QUALITY, workers=workers, quiet=True)


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    rows = shardforge.open(out).metadata.select(["source", "jpg_offset", "jpg_size", "shard"])
    for row in rows.to_pylist():
        with open(out / f"{row['shard']}.tar", "rb") as tar:
            tar.seek(row["jpg_offset"])
            yield Path(row["source"]).stem, tar.read(row["jpg_size"])
