"""Looks into a dataset that a test has built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from shardforge.shards.manifest import Manifest


def rows(out: Path) -> dict[str, dict[str, Any]]:
    """source → row."""
    names = [shard.name for split in Manifest.read(out).splits.values() for shard in split.shards]
    found = pa.concat_tables([pq.read_table(out / f"{name}.parquet") for name in names]).to_pylist()
    return {row["source"]: row for row in found}


def payload(out: Path, row: dict[str, Any], field: str) -> bytes:
    tar = (out / f"{row['shard']}.tar").read_bytes()
    return tar[row[f"{field}_offset"] : row[f"{field}_offset"] + row[f"{field}_size"]]
