"""Mosaic streaming: a pool, an MDSWriter in each process, indexes merged at the end, as documented."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.torchvision_operators import declare

try:
    import torchvision  # noqa: F401
except RuntimeError:
    declare()
import streaming
from streaming.base.util import merge_index

from scripts.bench.work import pillow_jpeg, sources


def _write(part: tuple[Path, list[Path]]) -> None:
    out, paths = part
    with streaming.MDSWriter(out=str(out), columns={"name": "str", "jpg": "bytes"}) as writer:
        for path in paths:
            name, data = pillow_jpeg(path)
            writer.write({"name": name, "jpg": data})


def build(source: Path, out: Path, workers: int) -> None:
    paths = sources(source)
    with multiprocessing.Pool(workers) as pool:
        pool.map(_write, [(out / str(i), paths[i::workers]) for i in range(workers)], 1)
    merge_index(str(out))


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    for sample in streaming.LocalDataset(str(out)):
        yield sample["name"], sample["jpg"]
