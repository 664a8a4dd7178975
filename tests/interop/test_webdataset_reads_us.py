"""The real ``webdataset`` library reads our shards: every sample once, with the pixels and labels that we give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import webdataset

from shardforge.stream.reader import open_dataset
from tests.datasets import make_dataset

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def urls(root: Path, split: str) -> list[str]:
    return [str(path) for path in sorted(root.glob(f"{split}-*.tar"))]


@pytest.mark.parametrize("form", ["jpg", "png"])
def test_pillow_pixels_and_labels_are_ours(tmp_path: Path, form: str) -> None:
    make_dataset(tmp_path, {"train": [7, 5, 9], "val": [4]}, format=form, size=(33, 47), failed_per_shard=1)
    ours = open_dataset(tmp_path).splits["train"]
    theirs = list(
        webdataset.WebDataset(urls(tmp_path, "train"), shardshuffle=False)
        .decode("pil")
        .to_tuple(form, "cls", "__key__")
    )
    assert [key for _, _, key in theirs] == [sample["key"] for sample in ours]
    for (image, label, _), sample in zip(theirs, ours, strict=True):
        assert np.array_equal(np.asarray(image), sample["image"])
        assert label == sample["label"]


def test_sidecars_are_ours(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [7, 5]}, sidecars=["txt", "json", "mask.png"])
    ours = open_dataset(tmp_path).splits["train"]
    assert len(ours) == 12
    theirs = webdataset.WebDataset(urls(tmp_path, "train"), shardshuffle=False).decode()
    for sample, own in zip(theirs, ours, strict=True):
        assert sample["__key__"] == own["key"]
        assert sample["txt"] == own["txt"]
        assert sample["json"] == own["json"]
        assert set(sample) >= {"jpg", "cls", "txt", "json", "mask.png"}


def test_arrays_are_ours(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [6]}, format="npy", pixels=lambda n: np.full((3, 4, 3), n, np.uint16))
    theirs = webdataset.WebDataset(urls(tmp_path, "train"), shardshuffle=False).decode().to_tuple("npy", "cls")
    ours = open_dataset(tmp_path)
    assert len(ours) == 6
    for (array, _), own in zip(theirs, ours, strict=True):
        assert np.array_equal(array, own["image"])
        assert array.dtype == own["image"].dtype
