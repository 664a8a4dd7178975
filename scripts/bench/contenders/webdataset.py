"""webdataset as its documentation suggests: a pool makes samples with Pillow, one ShardWriter writes them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

import webdataset

from scripts.bench.work import pillow_jpeg, sources

_CHUNK = 4


def build(source: Path, out: Path, workers: int) -> None:
    pattern = str(out / "%06d.tar")
    with multiprocessing.Pool(workers) as pool, webdataset.ShardWriter(pattern, verbose=0) as sink:
        for key, data in pool.imap_unordered(pillow_jpeg, sources(source), _CHUNK):
            sink.write({"__key__": key, "jpg": data})


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    shards = [str(path) for path in sorted(out.glob("*.tar"))]
    for sample in webdataset.WebDataset(shards, shardshuffle=False):
        yield sample["__key__"], sample["jpg"]
