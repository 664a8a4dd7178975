"""This project: the loader with threads, with a worker process, and the dataset in torch's DataLoader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from scripts.bench.reading.work import BATCH, CROP
from shardforge import ShardDataset, ShardLoader
from shardforge import build as build_dataset
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop

SHARD = 1000


def write(pictures: Path, out: Path, payload: str, shard: int = SHARD) -> None:
    """Writes a dataset of the files in ``pictures``, as they are."""
    table = out.with_suffix(".csv")
    rows = [f"{path},{int(path.stem) % 10}" for path in sorted(pictures.glob("*.jpg"))]
    table.write_text("\n".join(["path,label", *rows]) + "\n")
    how: dict[str, Any] = {"format": "keep"} if payload == "jpg" else {"format": "npy", "size": "256x256"}
    if payload == "npy":
        how["resize"] = "exact"
    build_dataset(pictures, out, table=table, label="label", shard_samples=shard, quiet=True, overwrite=True, **how)


def _transform() -> list[Any]:
    return [RandomResizedCrop(CROP), RandomHorizontalFlip()]


@contextmanager
def _loader(data: Path, workers: int, processes: int) -> Iterator[Any]:
    with ShardLoader(
        data, batch_size=BATCH, transform=_transform(), threads=workers, workers=processes, as_tuple=True
    ) as loader:
        yield lambda: iter(loader)


@contextmanager
def _dataset(data: Path, workers: int) -> Iterator[Any]:
    dataset = ShardDataset(data, batch_size=BATCH, transform=_transform(), as_tuple=True)
    loader = DataLoader(dataset, batch_size=None, num_workers=workers, persistent_workers=True)
    yield lambda: iter(loader)


READERS = {
    "shardforge": partial(_loader, processes=0),
    "shardforge_worker": partial(_loader, processes=1),
    "shardforge_dataset": _dataset,
    "shardforge_npy": partial(_loader, processes=0),
}
