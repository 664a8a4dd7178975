"""Mosaic streaming: StreamingDataset in a DataLoader, JPEGs stored as bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from scripts.bench.torchvision_operators import declare

try:
    import torchvision  # noqa: F401
except RuntimeError:
    declare()
import streaming
from streaming.base.util import clean_stale_shared_memory
from torch.utils.data import DataLoader

from scripts.bench.reading.work import BATCH, documented, label_of, pillow, tuned


def write(pictures: Path, out: Path, payload: str) -> None:
    with streaming.MDSWriter(out=str(out), columns={"jpg": "bytes", "label": "int"}) as writer:
        for path in sorted(pictures.glob("*.jpg")):
            writer.write({"jpg": path.read_bytes(), "label": label_of(path)})


class _Pictures(streaming.StreamingDataset):  # type: ignore[misc]
    def __init__(self, path: str, fast: bool) -> None:
        super().__init__(local=path, shuffle=True, batch_size=BATCH)
        self._transform = None if fast else documented()

    def __getitem__(self, at: Any) -> tuple[Any, int]:
        sample = super().__getitem__(at)
        if self._transform is None:
            return tuned(sample["jpg"], random), sample["label"]
        return self._transform(pillow(sample["jpg"])), sample["label"]


@contextmanager
def _reader(data: Path, workers: int, fast: bool) -> Iterator[Any]:
    # What an earlier run left behind keeps a new one from starting.
    clean_stale_shared_memory()
    loader: Any = DataLoader(
        _Pictures(str(data), fast), batch_size=BATCH, num_workers=workers, persistent_workers=True
    )
    yield lambda: iter(loader)


READERS = {"mosaic": partial(_reader, fast=False), "mosaic_tuned": partial(_reader, fast=True)}
