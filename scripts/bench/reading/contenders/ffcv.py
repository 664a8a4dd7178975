"""FFCV: its Loader with the decoder that crops, over JPEGs as they are, or over raw pixels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor
from ffcv.writer import DatasetWriter
from PIL import Image

from scripts.bench.reading.work import BATCH, CROP, RATIO, SCALE, label_of

_FILE = "set.beton"
_QUALITY = 95


class _Pictures:
    """Pillow pictures, or arrays."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: int) -> tuple[Any, int]:
        path = self._paths[i]
        if path.suffix == ".npy":
            return np.load(path), label_of(path)
        with Image.open(path) as picture:
            return picture.convert("RGB"), label_of(path)


def write(pictures: Path, out: Path, payload: str) -> None:
    field = RGBImageField("raw") if payload == "npy" else RGBImageField("jpg", jpeg_quality=_QUALITY)
    writer = DatasetWriter(str(out / _FILE), {"image": field, "label": IntField()}, num_workers=2)
    writer.from_indexed_dataset(_Pictures(sorted(pictures.glob(f"*.{payload}"))))


@contextmanager
def _reader(data: Path, workers: int) -> Iterator[Any]:
    crop = RandomResizedCropRGBImageDecoder((CROP, CROP), scale=SCALE, ratio=RATIO)
    loader = Loader(
        str(data / _FILE),
        batch_size=BATCH,
        num_workers=workers,
        order=OrderOption.RANDOM,
        pipelines={
            "image": [crop, RandomHorizontalFlip(), ToTensor()],
            "label": [IntDecoder(), ToTensor(), Squeeze()],
        },
    )
    yield lambda: iter(loader)


READERS = {"ffcv": _reader, "ffcv_raw": _reader}
