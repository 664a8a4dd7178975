"""FFCV: DatasetWriter over an indexed dataset of Pillow pictures; the writer encodes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ffcv.fields import BytesField, RGBImageField
from ffcv.reader import Reader
from ffcv.writer import DatasetWriter
from PIL import Image

from scripts.bench.work import QUALITY, fitted, sources

_FILE = "set.beton"


class _Pictures:
    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        import numpy as np

        with Image.open(self.paths[i]) as picture:
            colours = picture.convert("RGB")
        resized = colours.resize(fitted(*colours.size), Image.Resampling.LANCZOS)
        return np.frombuffer(self.paths[i].stem.encode(), np.uint8), resized


def build(source: Path, out: Path, workers: int) -> None:
    fields = {"name": BytesField(), "image": RGBImageField(write_mode="jpg", jpeg_quality=QUALITY)}
    writer = DatasetWriter(str(out / _FILE), fields, num_workers=workers)
    writer.from_indexed_dataset(_Pictures(sources(source)), chunksize=4)
    # The writer leaves them behind; their processor time counts only once they have been waited for.
    for worker in multiprocessing.active_children():
        worker.join()


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    path = out / _FILE
    reader = Reader(str(path))
    sizes = {int(entry["ptr"]): int(entry["size"]) for entry in reader.alloc_table}
    with open(path, "rb") as file:
        for name, image in reader.metadata:
            members = []
            for start in (int(name["ptr"]), int(image["data_ptr"])):
                file.seek(start)
                members.append(file.read(sizes[start]))
            yield members[0].decode(), members[1]
