"""Opening a dataset and looking into it."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards import layout, metadata
from shardforge.shards.manifest import Manifest
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.reader import open_dataset
from tests.datasets import class_label, make_dataset, mask, picture


def test_a_dataset_has_every_sample_with_its_own_picture_and_label(plain: Path) -> None:
    dataset = open_dataset(plain)
    assert len(dataset) == 54
    assert {name: len(split) for name, split in dataset.splits.items()} == {"test": 3, "train": 40, "val": 11}
    for sample in dataset:
        number = int(sample["key"])
        assert np.array_equal(sample["image"], picture(number))
        assert sample["label"] == class_label(number)
    assert dataset.classes == {"ant": 0, "bee": 1, "cat": 2, "dog": 3}


def test_samples_are_numbered_through_all_splits(plain: Path) -> None:
    dataset = open_dataset(plain)
    assert [sample["key"] for sample in dataset] == [dataset[i]["key"] for i in range(54)]
    assert dataset[3]["key"] == dataset.splits["train"][0]["key"]
    assert dataset[-1]["key"] == dataset.splits["val"][10]["key"]
    assert [dataset[i]["split"] for i in (2, 3, 42, 43)] == ["test", "train", "train", "val"]
    for outside in (54, -55):
        with pytest.raises(IndexError, match="54 samples"):
            dataset[outside]
    with pytest.raises(TypeError):
        dataset["0"]  # type: ignore[index]


def test_metadata_rows_stand_beside_their_samples(plain: Path) -> None:
    dataset = open_dataset(plain)
    assert dataset.metadata["key"].to_pylist() == [sample["key"] for sample in dataset]
    assert dataset.metadata["age"].to_pylist() == [int(sample["key"]) for sample in dataset]
    assert set(dataset.metadata["status"].to_pylist()) == {"success"}


def test_every_stored_field_is_there(rich: Path) -> None:
    samples = list(open_dataset(rich))
    assert len(samples) == 8 + 8 + 5
    for sample in samples:
        number = int(sample["key"])
        assert sample["json"] == {"number": number}
        assert np.array_equal(sample["mask.png"], mask(number))
        assert sample.get("txt") == (f"caption {number}" if number % 3 else None)


def test_a_dataset_pickles(plain: Path) -> None:
    copy = pickle.loads(pickle.dumps(open_dataset(plain)))  # noqa: S301
    assert copy[7]["key"] == open_dataset(plain)[7]["key"]


def test_an_empty_split_is_a_split(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [2], "val": []})
    dataset = open_dataset(tmp_path)
    assert len(dataset.splits["val"]) == 0
    assert list(dataset.splits["val"]) == []
    assert dataset.metadata.num_rows == 2


def test_what_is_no_dataset_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"dataset\.json"):
        open_dataset(tmp_path)
    with pytest.raises(StorageError, match="nowhere"):
        open_dataset(tmp_path / "nowhere")


@pytest.mark.parametrize("name", [layout.index_path(Path(), "val").name, layout.MANIFEST])
def test_damaged_descriptions_are_named(tmp_path: Path, name: str) -> None:
    make_dataset(tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[: len(content) // 2] = bytes(len(content) // 2)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DamagedError, match=name):
        open_dataset(tmp_path)


def test_an_index_of_another_split_is_damage(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    (tmp_path / "val.index.arrow").write_bytes((tmp_path / "train.index.arrow").read_bytes())
    with pytest.raises(DamagedError, match="16 samples where the manifest has 5"):
        open_dataset(tmp_path)


def replace_payload(root: Path, shard: str, row: int, field: str, payload: bytes, *, tell: bool) -> None:
    """Overwrites a member in place; ``tell`` also puts the new digest into the parquet, as a build would have."""
    path = layout.parquet_path(root, shard)
    rows = metadata.read(path)
    offset, size = rows[f"{field}_offset"][row].as_py(), rows[f"{field}_size"][row].as_py()
    assert len(payload) == size
    with open(layout.tar_path(root, shard), "r+b") as tar:
        tar.seek(offset)
        tar.write(payload)
    if tell:
        digests = rows["sha256"].to_pylist()
        digests[row] = hashlib.sha256(payload).hexdigest()
        number = rows.schema.get_field_index("sha256")
        metadata.write(path, rows.set_column(number, "sha256", pa.array(digests)))


def without_end(payload: bytes) -> bytes:
    """The same length, but the last bytes of the picture and the end marker are gone."""
    return payload[:-60] + bytes(60)


def test_a_jpeg_that_the_build_kept_in_spite_of_its_flaws_is_read(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    with open(tmp_path / "train-000000.tar", "rb") as tar:
        rows = metadata.read(tmp_path / "train-000000.parquet")
        tar.seek(rows["jpg_offset"][2].as_py())
        flawed = without_end(tar.read(rows["jpg_size"][2].as_py()))
    replace_payload(tmp_path, "train-000000", 2, "jpg", flawed, tell=False)
    with pytest.raises(DamagedError, match=r"train-000000\.tar, sample 000000002, field jpg"):
        open_dataset(tmp_path)[2]
    replace_payload(tmp_path, "train-000000", 2, "jpg", flawed, tell=True)
    assert open_dataset(tmp_path)[2]["image"].shape == (32, 32, 3)


def test_a_manifest_with_other_sizes_is_noticed_before_anything_is_mapped(tmp_path: Path) -> None:
    manifest = make_dataset(tmp_path)
    shards = tuple(replace(shard, bytes=shard.bytes + 512) for shard in manifest.splits["val"].shards)
    splits = {**manifest.splits, "val": replace(manifest.splits["val"], shards=shards)}
    replace(manifest, splits=splits).write(tmp_path / layout.MANIFEST)
    with pytest.raises(DamagedError, match="bytes long"):
        open_dataset(tmp_path).splits["val"][0]
    assert Manifest.read(tmp_path).splits["val"].shards == shards


def test_reading_loads_nothing_that_only_building_needs(plain: Path) -> None:
    script = (
        "import sys; from shardforge.stream.loader import ShardLoader; import shardforge.transforms\n"
        f"next(iter(ShardLoader({str(plain)!r}, batch_size=4)))\n"
        "print([m for m in ('PIL', 'pydicom', 'click', 'yaml', 'pydantic', 'imagecodecs', 'webdataset',"
        " 'shardforge.compile', 'shardforge.sources', 'shardforge.codecs', 'shardforge.recipe') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_dataset_does_not_load_torch(plain: Path) -> None:
    script = f"import sys; from shardforge.stream.reader import open_dataset; open_dataset({str(plain)!r})[0]\n"
    done = subprocess.run(
        [sys.executable, "-c", script + "print('torch' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("opened", [open_dataset, ShardDataset])
def test_a_url_is_sent_to_the_reader_of_urls(opened: Callable[[str], Any]) -> None:
    with pytest.raises(UsageError, match=r"http://host/x: .* SequentialDataset"):
        opened("http://host/x")
