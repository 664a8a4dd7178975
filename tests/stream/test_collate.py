"""Batches of arrays of different sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from shardforge.errors import UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.transforms import PadCollate
from tests.datasets import make_dataset, picture

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def sides(number: int) -> tuple[int, int]:
    return 20 + number, 40 - number


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("uneven")
    make_dataset(root, {"train": [6, 5]}, format="png", size=sides, sidecars=["txt"])
    return root


@pytest.mark.parametrize("workers", [0, 1])
def test_smaller_pictures_are_padded_to_the_largest(uneven: Path, workers: int) -> None:
    options: dict[str, Any] = {"fields": ("image", "label", "key", "txt"), "collate": PadCollate(7, multiple=8)}
    with ShardLoader(uneven, "train", 4, tail="mask", workers=workers, threads=2, **options) as loader:
        batches = list(loader)
    assert sum(int(batch["valid"].sum()) for batch in batches) == 11
    for batch in batches:
        assert batch["image"].shape[0] == batch["label"].shape[0] == len(batch["txt"]) == 4
        assert batch["image"].shape[1] % 8 == batch["image"].shape[2] % 8 == 0
        for image, shape, key in zip(batch["image"], batch["image_shape"], batch["key"], strict=True):
            if key:
                height, width = sides(int(key))
                assert shape.tolist() == [height, width, 3]
                assert np.array_equal(image[:height, :width].numpy(), picture(int(key), (height, width)))
                assert (image[height:] == 7).all()
                assert (image[:, width:] == 7).all()


def test_it_serves_a_plain_dataloader_too(uneven: Path) -> None:
    dataset = ShardDataset(uneven, fields=("image", "key"))
    batch = next(iter(DataLoader(dataset, batch_size=5, collate_fn=PadCollate())))
    heights = [sides(int(key))[0] for key in batch["key"]]
    assert batch["image"].shape[1] == max(heights)
    assert batch["image_shape"][:, 0].tolist() == heights


def test_a_collate_of_the_users_gets_complete_rows(uneven: Path) -> None:
    def count(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"images": [row["image"].shape for row in rows], "n": torch.tensor(len(rows)), "last": rows[-1]["key"]}

    batch = next(iter(ShardDataset(uneven, batch_size=3, collate=count, fields=("image", "key"))))
    assert batch["images"][-1] == (*sides(int(batch["last"])), 3)
    assert int(batch["n"]) == 3


def test_what_cannot_be_padded_is_refused() -> None:
    with pytest.raises(UsageError, match="'image'"):
        PadCollate()([{"image": np.zeros((2, 2, 3), np.uint8)}, {"image": np.zeros((2, 2), np.uint8)}])
    with pytest.raises(UsageError, match="multiple"):
        PadCollate(multiple=0)


def test_collate_needs_batches(uneven: Path) -> None:
    with pytest.raises(UsageError, match="batch_size"):
        ShardDataset(uneven, collate=PadCollate())
