"""LitData: StreamingDataset in its StreamingDataLoader, JPEGs stored as bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import litdata

from scripts.bench.reading.work import BATCH, documented, label_of, pillow, tuned


def _sample(path: str) -> dict[str, Any]:
    return {"jpg": Path(path).read_bytes(), "label": label_of(Path(path))}


def write(pictures: Path, out: Path, payload: str) -> None:
    paths = [str(path) for path in sorted(pictures.glob("*.jpg"))]
    litdata.optimize(_sample, paths, output_dir=str(out), num_workers=2, chunk_bytes="64MB")


class _Pictures(litdata.StreamingDataset):  # type: ignore[misc]
    def __init__(self, path: str, fast: bool) -> None:
        super().__init__(path, shuffle=True)
        self._transform = None if fast else documented()

    def __getitem__(self, index: Any) -> tuple[Any, int]:
        sample = super().__getitem__(index)
        if self._transform is None:
            return tuned(sample["jpg"], random), sample["label"]
        return self._transform(pillow(sample["jpg"])), sample["label"]


@contextmanager
def _reader(data: Path, workers: int, fast: bool) -> Iterator[Any]:
    loader = litdata.StreamingDataLoader(
        _Pictures(str(data), fast), batch_size=BATCH, num_workers=workers, persistent_workers=True
    )
    yield lambda: iter(loader)


READERS = {"litdata": partial(_reader, fast=False), "litdata_tuned": partial(_reader, fast=True)}
