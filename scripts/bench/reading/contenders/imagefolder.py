"""A folder of classes, read by a small dataset class with Pillow in torch's DataLoader."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.bench.reading.work import BATCH, CROP, label_of, random_box


def write(pictures: Path, out: Path, payload: str) -> None:
    for path in sorted(pictures.glob("*.jpg")):
        target = out / str(label_of(path)) / path.name
        target.parent.mkdir(exist_ok=True)
        os.link(path, target)


class _Pictures:
    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        import numpy as np
        import torch
        from PIL import Image

        path = self._paths[i]
        with Image.open(path) as picture:
            colours = picture.convert("RGB")
        top, left, height, width = random_box(colours.height, colours.width, random)
        box = (left, top, left + width, top + height)
        crop = colours.crop(box).resize((CROP, CROP), Image.Resampling.BILINEAR)
        if random.random() < 0.5:
            crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(crop)), int(path.parent.name)


@contextmanager
def _reader(data: Path, workers: int) -> Iterator[Any]:
    from torch.utils.data import DataLoader

    paths = sorted(data.glob("*/*.jpg"))
    loader: Any = DataLoader(
        _Pictures(paths),  # type: ignore[arg-type]
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
    )
    yield lambda: iter(loader)


READERS = {"imagefolder": _reader}
