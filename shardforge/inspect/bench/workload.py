"""What is read while measuring: one split, as a training job would read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards.manifest import Manifest
from shardforge.stream.augment import RandomHorizontalFlip, RandomResizedCrop, Transform
from shardforge.stream.collate import PadCollate
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.stream.reader import Split, choose_split
from shardforge.stream.sample import EXAMPLES_TRIED

CROP = 224
_RESIZABLE = ("uint8", "uint16", "int16", "float32", "float64")


@dataclass(frozen=True)
class Workload:
    """One way of reading a split.

    Attributes:
        root, split: where.
        samples: in the split.
        field: the member that holds the image.
        batch_size: rows of a batch; no more than there are samples.
        crop: side in pixels of the random crops, which are also flipped; 0: images as they are stored.
        padded: whether images of different sizes are padded to form a batch.
    """

    root: Path
    split: str
    samples: int
    field: str
    batch_size: int
    crop: int
    padded: bool

    def transforms(self) -> list[Transform]:
        """What happens to an image between decoder and batch."""
        return [RandomResizedCrop(self.crop), RandomHorizontalFlip()] if self.crop else []

    def dataset(self, transforms: list[Transform]) -> ShardDataset:
        """Batches made by the thread that asks for them."""
        return ShardDataset(self.root, transform=transforms, **self._common())

    def loader(self, threads: int, workers: int) -> ShardLoader:
        """Batches made ahead."""
        return ShardLoader(self.root, transform=self.transforms(), threads=threads, workers=workers, **self._common())

    def _common(self) -> dict[str, Any]:
        # Alone, also under torchrun: what is measured is this process.
        collate = PadCollate() if self.padded else None
        share = {"rank": 0, "world_size": 1, "tail": "drop"}
        return {"split": self.split, "batch_size": self.batch_size, "collate": collate, "on_error": "mask", **share}


def choose_workload(root: Path, split: str | None, batch_size: int, crop: int | None) -> Workload:
    """The way of reading that these options ask for.

    Args:
        split: default: ``train``, or else the first one with samples.
        crop: default: 224, or 7/8 of the first image's shorter side if that is less; 0 for volumes and for arrays of
            a type that cannot be resized.

    Raises:
        UsageError: no such split, or one without samples; a crop of what cannot be cropped.
        StorageError, DamagedError: the dataset cannot be read, or none of its samples.
    """
    if batch_size < 1:
        raise UsageError(f"--batch-size {batch_size}: at least 1")
    if crop is not None and crop < 0:
        raise UsageError(f"--crop {crop}: pixels, or 0 for images as they are stored")
    manifest = Manifest.read(root)
    chosen = choose_split(root, manifest, _split_of(manifest) if split is None else split)
    if not len(chosen):
        raise UsageError(f"split {chosen.name!r} has no samples", where=root)
    side = _crop_of(chosen, _example(chosen), crop)
    return Workload(
        root=root,
        split=chosen.name,
        samples=len(chosen),
        field=manifest.image_field,
        batch_size=min(batch_size, len(chosen)),
        crop=side,
        padded=not side and _sizes_differ(chosen),
    )


def _split_of(manifest: Manifest) -> str:
    filled = [name for name, info in manifest.splits.items() if info.samples]
    return "train" if "train" in filled or not filled else filled[0]


def _example(split: Split) -> npt.NDArray[Any]:
    """An image like one of the split's: the first, or where that cannot be read, another."""
    dataset = ShardDataset(split.root, split.name, fields=("image",), rank=0, world_size=1)
    try:
        return np.asarray(dataset.source.maker.blank(np.arange(len(split)))["image"])
    except (StorageError, DamagedError) as error:
        what = f"none of {min(len(split), EXAMPLES_TRIED):,} samples can be read; the first: {error.what}"
        raise type(error)(what, where=error.where, todo=error.todo) from None


def _crop_of(split: Split, image: npt.NDArray[Any], crop: int | None) -> int:
    if crop == 0:
        return 0
    volume = split.manifest.fields[split.manifest.image_field].kind == "volume"
    if volume or image.dtype.name not in _RESIZABLE:
        if crop is None:
            return 0
        what = "volumes" if volume else f"arrays of {image.dtype}"
        raise UsageError(f"--crop {crop}: {what} are not cropped", todo="--crop 0 reads them as they are stored.")
    return min(CROP, max(1, min(image.shape[:2]) * 7 // 8)) if crop is None else crop


def _sizes_differ(split: Split) -> bool:
    if split.manifest.fields[split.manifest.image_field].kind == "volume":
        return True
    table = split.table(["width", "height"])
    return any(len(table[name].unique()) > 1 for name in ("width", "height"))
