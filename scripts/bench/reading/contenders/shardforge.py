"""This project: the loader with threads, with a worker process, and the dataset in torch's DataLoader."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from scripts.bench.reading.work import BATCH, CROP, SQUARE, label_of
from shardforge import ShardDataset, ShardLoader
from shardforge import build as build_dataset
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop

SHARD = 1000


def write(pictures: Path, out: Path, payload: str, shard: int = SHARD) -> None:
    """Writes a dataset of the pictures, as they are; arrays are made again from the pictures in the folder beside."""
    how: dict[str, Any] = {"format": "keep"}
    source = pictures
    if payload == "npy":
        source = pictures.with_name("pictures")
        how = {"format": "npy", "size": f"{SQUARE}x{SQUARE}", "resize": "exact"}
    rows = [f"{path.stem}.jpg,{label_of(path)}" for path in sorted(pictures.glob(f"*.{payload}"))]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "pictures.csv")
        table.write_text("\n".join(["path,label", *rows]) + "\n")
        build_dataset(source, out, table=table, label="label", shard_samples=shard, quiet=True, **how)


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
