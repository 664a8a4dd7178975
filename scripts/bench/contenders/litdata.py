"""LitData: ``optimize`` with a function that makes samples with Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litdata

from scripts.bench.work import pillow_jpeg, sources


def _sample(path: str) -> dict[str, Any]:
    name, data = pillow_jpeg(Path(path))
    return {"name": name, "jpg": data}


def build(source: Path, out: Path, workers: int) -> None:
    inputs = [str(path) for path in sources(source)]
    litdata.optimize(_sample, inputs, output_dir=str(out), num_workers=workers, chunk_bytes="64MB")


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    samples = litdata.StreamingDataset(str(out))
    for i in range(len(samples)):
        yield samples[i]["name"], samples[i]["jpg"]
