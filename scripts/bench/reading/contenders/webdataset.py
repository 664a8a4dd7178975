"""webdataset: the pipeline of its documentation (Pillow, torchvision), and one with a decoder tuned by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import webdataset

from scripts.bench.reading.work import BATCH, documented, label_of, tuned

_SHARD = 1000
_BUFFER = 1000


def write(pictures: Path, out: Path, payload: str) -> None:
    with webdataset.ShardWriter(str(out / "%06d.tar"), maxcount=_SHARD, verbose=0) as sink:
        for path in sorted(pictures.glob("*.jpg")):
            sink.write({"__key__": path.stem, "jpg": path.read_bytes(), "cls": label_of(path)})


@contextmanager
def _reader(data: Path, workers: int, fast: bool) -> Iterator[Any]:
    shards = [str(path) for path in sorted(data.glob("*.tar"))]
    stages = webdataset.WebDataset(shards, shardshuffle=len(shards)).shuffle(_BUFFER)
    if fast:
        # Batches as arrays are stacked once and become tensors without a copy.
        samples = stages.to_tuple("jpg", "cls").map_tuple(_decoded, int).batched(BATCH, collation_fn=_stacked)
    else:
        samples = stages.decode("pil").to_tuple("jpg", "cls").map_tuple(documented(), _same).batched(BATCH)
    loader = webdataset.WebLoader(samples, batch_size=None, num_workers=workers, persistent_workers=True)
    yield lambda: iter(loader)


def _decoded(data: bytes) -> Any:
    return tuned(data, random)


def _same(value: Any) -> Any:
    return value


def _stacked(samples: Sequence[tuple[Any, int]]) -> tuple[Any, Any]:
    images, labels = zip(*samples, strict=True)
    return torch.from_numpy(np.stack(images)), torch.tensor(labels)


READERS = {"webdataset": partial(_reader, fast=False), "webdataset_tuned": partial(_reader, fast=True)}
