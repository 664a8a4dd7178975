"""``ShardDataset`` in one process: what samples and batches hold. Worker processes: test_workers.py."""

from __future__ import annotations

import logging
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from torch.utils.data import DataLoader

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards import layout, metadata
from shardforge.stream.dataset import ShardDataset
from shardforge.transforms import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, Resize
from tests.datasets import SITES, class_label, make_dataset, mask, multi_label, number_label, picture, vector_label


def keys(dataset: ShardDataset) -> list[str]:
    """Keys of one epoch in the order given, missing rows left out."""
    out: list[str] = []
    for sample in dataset:
        out += [key for key in (sample["key"] if isinstance(sample["key"], list) else [sample["key"]]) if key]
    return out


def damage(root: Path, split: str, row: int, field: str = "png") -> str:
    """Overwrites a payload of the first shard with zeros; returns the sample's key."""
    shard = layout.shard_name(split, 0)
    rows = metadata.read(layout.parquet_path(root, shard)).filter(pc.field("status") == "success").slice(row, 1)
    with open(layout.tar_path(root, shard), "r+b") as tar:
        tar.seek(rows[f"{field}_offset"][0].as_py())
        tar.write(bytes(rows[f"{field}_size"][0].as_py()))
    return str(rows["key"][0].as_py())


# --- what a sample is ---------------------------------------------------------------------------------------------


def test_samples_are_uint8_tensors_with_int64_labels(plain: Path) -> None:
    samples = list(ShardDataset(plain, fields=("image", "label", "key")))
    assert len(samples) == 40
    for sample in samples:
        number = int(sample["key"])
        assert sample["image"].dtype == torch.uint8
        assert np.array_equal(sample["image"].numpy(), picture(number))
        assert sample["label"].dtype == torch.int64
        assert int(sample["label"]) == class_label(number)


def test_image_and_label_are_the_default(plain: Path) -> None:
    assert set(next(iter(ShardDataset(plain)))) == {"image", "label"}
    assert isinstance(next(iter(ShardDataset(plain, as_tuple=True))), tuple)


def test_every_stored_field_and_column_can_be_asked_for(rich: Path) -> None:
    names = (
        "site",
        "txt",
        "mask",
        "mask.png",
        "json",
        "cls",
        "age",
        "scale_x",
        "label_name",
        "source",
        "flags",
        "key",
    )
    samples = list(ShardDataset(rich, fields=names))
    assert len(samples) == 16
    for sample in samples:
        number = int(sample["key"])
        assert tuple(sample) == names
        assert sample["site"] == SITES[number % 3]
        assert sample["txt"] == (f"caption {number}" if number % 3 else "")
        assert sample["mask"].dtype == torch.uint16
        assert np.array_equal(sample["mask"].numpy(), mask(number))
        assert torch.equal(sample["mask.png"], sample["mask"])
        assert sample["json"] == {"number": number}
        assert int(sample["cls"]) == class_label(number)
        assert sample["age"].dtype == torch.int32
        assert int(sample["age"]) == number
        assert sample["scale_x"].dtype == torch.float32
        assert sample["source"] == f"raw/picture {number}.jpg"
        assert sample["flags"] == []


def test_batches_stack_numbers_and_list_texts(rich: Path) -> None:
    batch = next(iter(ShardDataset(rich, batch_size=5, fields=("image", "label", "key", "age", "site", "json"))))
    assert batch["image"].shape == (5, 32, 32, 3)
    assert batch["image"].dtype == torch.uint8
    assert batch["label"].tolist() == [class_label(int(key)) for key in batch["key"]]
    assert batch["age"].tolist() == [int(key) for key in batch["key"]]
    assert batch["age"].dtype == torch.int32
    assert batch["site"] == [SITES[int(key) % 3] for key in batch["key"]]
    assert batch["json"] == [{"number": int(key)} for key in batch["key"]]
    assert "valid" not in batch


def test_tuples_follow_the_fields(plain: Path) -> None:
    key, image, label = next(iter(ShardDataset(plain, fields=("key", "image", "label"), as_tuple=True)))
    assert (int(key) % 4, image.shape) == (int(label), (32, 32, 3))
    *_, valid = next(iter(ShardDataset(plain, fields=("key",), tail="mask", as_tuple=True)))
    assert bool(valid)
    valid, key = next(iter(ShardDataset(plain, fields=("valid", "key"), as_tuple=True)))
    assert bool(valid)
    assert isinstance(key, str)


def test_several_labels_become_zeros_and_ones(tmp_path: Path) -> None:
    make_dataset(tmp_path, label_kind="multi")
    batch = next(iter(ShardDataset(tmp_path, batch_size=16, fields=("label", "key"))))
    assert batch["label"].dtype == torch.float32
    assert batch["label"].shape == (16, 4)
    for row, key in zip(batch["label"], batch["key"], strict=True):
        assert row.nonzero().flatten().tolist() == multi_label(int(key))
        assert set(row.tolist()) <= {0.0, 1.0}


def test_numbers_become_float32(tmp_path: Path) -> None:
    make_dataset(tmp_path / "one", label_kind="number")
    batch = next(iter(ShardDataset(tmp_path / "one", batch_size=16, fields=("label", "key"))))
    assert batch["label"].dtype == torch.float32
    assert batch["label"].tolist() == [number_label(int(key)) for key in batch["key"]]
    make_dataset(tmp_path / "three", label_kind="number", label_size=3)
    batch = next(iter(ShardDataset(tmp_path / "three", batch_size=16, fields=("label", "key"))))
    assert batch["label"].dtype == torch.float32
    assert batch["label"].tolist() == [vector_label(int(key), 3) for key in batch["key"]]
    sample = next(iter(DataLoader(ShardDataset(tmp_path / "three"), batch_size=4)))
    assert (sample["label"].dtype, sample["label"].shape) == (torch.float32, (4, 3))


def test_a_dataset_without_labels_gives_images_only(tmp_path: Path) -> None:
    make_dataset(tmp_path, label_kind="none")
    assert set(next(iter(ShardDataset(tmp_path)))) == {"image"}
    with pytest.raises(UsageError, match="no labels"):
        ShardDataset(tmp_path, fields=("image", "label"))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_array_images_keep_their_type(tmp_path: Path, dtype: type) -> None:
    make_dataset(tmp_path, format="npy", channels=1, pixels=lambda n: np.full((6, 5, 1), n, dtype))
    batch = next(iter(ShardDataset(tmp_path, batch_size=4, fields=("image", "key"))))
    assert batch["image"].shape == (4, 6, 5, 1)
    assert batch["image"].numpy().dtype == dtype
    assert batch["image"][:, 0, 0, 0].tolist() == [int(key) for key in batch["key"]]


@pytest.mark.parametrize("form", ["jpg", "webp"])
def test_grey_images_have_one_channel(tmp_path: Path, form: str) -> None:
    make_dataset(tmp_path, format=form, channels=1)
    assert next(iter(ShardDataset(tmp_path, batch_size=2)))["image"].shape == (2, 32, 32, 1)


def test_a_missing_optional_mask_is_explained(tmp_path: Path) -> None:
    make_dataset(tmp_path, sidecars=["mask.png"], optional=["mask.png"])
    with pytest.raises(UsageError, match=r"has no 'mask.png'"):
        list(ShardDataset(tmp_path, fields=("mask",)))
    chosen = ShardDataset(tmp_path, fields=("mask", "key"), where=pc.field("mask.png_size").is_valid())
    assert all(int(sample["key"]) % 3 for sample in chosen)


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"split": "trian"}, "test, train, val"),
        ({"fields": ("image", "labels")}, "labels.*There are: image, label, key.*age"),
        ({"fields": "image"}, "list of names"),
        ({"fields": ()}, "list of names"),
        ({"tail": "pad"}, "'mask' or 'drop'"),
        ({"on_error": "skip"}, "'raise' or 'mask'"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 41}, "fewer than one global batch"),
        ({"batch_size": 11, "rank": 0, "world_size": 4}, "fewer than one global batch"),
        ({"rank": 0}, "together"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"fields": ("key", "key")}, "twice"),
        ({"shuffle": 0}, "window"),
        ({"transform": 7}, "cannot be called"),
        ({"weights": "balanced", "shuffle": False}, "shuffle=True"),
        ({"weights": [None] * 40}, "weights"),
        ({"where": pc.field("age") < 0}, "none of the 40"),
    ],
)
def test_senseless_arguments_are_refused_at_once(plain: Path, arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(UsageError, match=match):
        ShardDataset(plain, **arguments)


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [2], "val": []})
    with pytest.raises(UsageError, match="no samples"):
        ShardDataset(tmp_path, split="val")


def test_a_missing_dataset_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"dataset\.json"):
        ShardDataset(tmp_path)


def test_images_of_different_sizes_give_one_clear_error(tmp_path: Path) -> None:
    make_dataset(tmp_path, size=lambda number: (20 + number, 30))
    with pytest.raises(
        UsageError, match=r"'image' of different sizes.*\[\d+, 30, 3\].*RandomResizedCrop.*--resize.*pads"
    ):
        next(iter(ShardDataset(tmp_path, batch_size=4)))
    batch = next(iter(ShardDataset(tmp_path, batch_size=4, transform=RandomResizedCrop(16))))
    assert batch["image"].shape == (4, 16, 16, 3)
    assert next(iter(ShardDataset(tmp_path)))["image"].shape[1:] == (30, 3)


# --- order, share, tail -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [None, 1, 7, 40])
def test_an_epoch_has_every_sample_once(plain: Path, batch_size: int | None) -> None:
    dataset = ShardDataset(plain, fields=("key",), tail="mask", batch_size=batch_size)
    found = keys(dataset)
    assert len(found) == len(set(found)) == 40 == dataset.samples


def test_without_shuffling_samples_come_as_stored(plain: Path) -> None:
    assert keys(ShardDataset(plain, fields=("key",), shuffle=False)) == sorted(
        keys(ShardDataset(plain, fields=("key",)))
    )


def test_batches_and_samples_have_the_same_order(plain: Path) -> None:
    batched = ShardDataset(plain, fields=("key",), tail="mask", batch_size=7)
    assert keys(batched) == keys(ShardDataset(plain, fields=("key",)))


def test_the_length_is_true(plain: Path) -> None:
    for tail, batch_size, length in (("mask", 7, 6), ("drop", 7, 5), ("mask", None, 40), ("drop", None, 40)):
        dataset = ShardDataset(plain, fields=("key",), tail=tail, batch_size=batch_size)  # type: ignore[arg-type]
        assert len(dataset) == length == len(list(dataset))
    shares = [ShardDataset(plain, fields=("key",), rank=rank, world_size=3) for rank in range(3)]
    assert [len(share) for share in shares] == [len(list(share)) for share in shares] == [13] * 3
    assert {share.dropped for share in shares} == {1}


def test_the_tail_is_dropped_when_shuffling_and_masked_otherwise(plain: Path) -> None:
    assert len(ShardDataset(plain, batch_size=16)) == 2
    assert len(ShardDataset(plain, batch_size=16, shuffle=False)) == 3


def test_missing_rows_are_zeros_of_the_right_shape(rich: Path) -> None:
    fields = ("image", "label", "key", "txt", "json", "mask", "age", "site")
    dataset = ShardDataset(rich, fields=fields, batch_size=10, tail="mask", transform=RandomResizedCrop(12))
    first, last = list(dataset)
    assert first["valid"].tolist() == [True] * 10
    assert last["valid"].tolist() == [True] * 6 + [False] * 4
    assert last["image"].shape == (10, 12, 12, 3)
    for name in ("image", "mask", "age"):
        assert not last[name][6:].any()
        assert last[name].dtype == first[name].dtype
    assert last["label"][6:].tolist() == [-100] * 4
    assert last["key"][6:] == last["txt"][6:] == last["site"][6:] == [""] * 4
    assert last["json"][6:] == [None] * 4


@pytest.mark.parametrize(("kind", "size"), [("multi", 1), ("number", 1), ("number", 3)])
def test_missing_labels_of_every_kind_are_minus_100(tmp_path: Path, kind: str, size: int) -> None:
    make_dataset(tmp_path, label_kind=kind, label_size=size)  # type: ignore[arg-type]
    last = list(ShardDataset(tmp_path, batch_size=9, tail="mask"))[-1]
    assert last["label"].dtype == torch.float32
    assert (last["label"][7:] == -100).all()
    assert (last["label"][:7] != -100).all()


def test_a_rank_may_have_nothing_but_missing_rows(plain: Path) -> None:
    dataset = ShardDataset(plain, "test", batch_size=2, rank=3, world_size=4, tail="mask", fields=("image", "key"))
    (batch,) = list(dataset)
    assert batch["valid"].tolist() == [False, False]
    assert batch["image"].shape == (2, 32, 32, 3)


def test_single_samples_are_masked_too(plain: Path) -> None:
    ranks = [list(ShardDataset(plain, shuffle=False, rank=r, world_size=3)) for r in range(3)]
    assert [len(samples) for samples in ranks] == [14, 14, 14]
    last = [samples[-1] for samples in ranks]
    assert [bool(sample["valid"]) for sample in last] == [True, False, False]
    assert last[1]["image"].shape == (32, 32, 3)
    assert int(last[2]["label"]) == -100


def test_ranks_share_the_order_that_one_would_read(plain: Path) -> None:
    alone = keys(ShardDataset(plain, fields=("key",)))
    ranks = [keys(ShardDataset(plain, fields=("key",), rank=r, world_size=4)) for r in range(4)]
    assert [ranks[place % 4][place // 4] for place in range(40)] == alone


def test_an_environment_that_comes_later_counts(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ShardDataset(plain, fields=("key",))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert len(dataset) == 10
    assert keys(dataset) == keys(ShardDataset(plain, fields=("key",), rank=1, world_size=4))


# --- epochs -------------------------------------------------------------------------------------------------------


def test_epochs_follow_each_other_and_can_be_set(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",))
    epochs = [keys(dataset) for _ in range(3)]
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert dataset.epoch == 3
    dataset.set_epoch(1)
    assert keys(dataset) == epochs[1]
    assert keys(dataset) == epochs[2]


def test_an_epoch_left_early_is_read_again(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",))
    first = next(iter(dataset))
    assert next(iter(dataset)) == first


def test_the_seed_changes_the_order(plain: Path) -> None:
    assert keys(ShardDataset(plain, fields=("key",))) != keys(ShardDataset(plain, fields=("key",), seed=1))


# --- where and weights --------------------------------------------------------------------------------------------


def test_only_chosen_samples_are_read(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",), where=pc.field("site") == "north")
    found = keys(dataset)
    assert len(found) == len(dataset) == dataset.samples
    wanted = {key for key in keys(ShardDataset(plain, fields=("key",))) if int(key) % 3 == 0}
    assert set(found) == wanted
    stored = ShardDataset(plain, fields=("key",), where=pc.field("site") == "north", shuffle=False)
    assert keys(stored) == sorted(wanted)


def test_weights_draw_with_replacement(plain: Path) -> None:
    stored = keys(ShardDataset(plain, fields=("key",), shuffle=False))
    weights = np.where(np.arange(40) < 3, 1.0, 0.0)
    dataset = ShardDataset(plain, fields=("key",), weights=weights)
    drawn = keys(dataset)
    assert len(drawn) == len(dataset) == 40
    assert set(drawn) == set(stored[:3])


def test_balanced_draws_give_rare_classes_as_often(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [50]}, label=lambda n: int(n == 7), format="png", size=(4, 4))
    dataset = ShardDataset(tmp_path, fields=("label",), weights="balanced")
    counts = Counter(int(sample["label"]) for _ in range(20) for sample in dataset)
    assert counts[0] + counts[1] == 1000
    # 500 ± 5 standard deviations.
    assert abs(counts[1] - 500) < 80


def test_weights_count_samples_of_the_split_also_under_a_choice(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",), where=pc.field("site") == "west", weights="age")
    drawn = [int(key) for _ in range(20) for key in keys(dataset)]
    assert all(number % 3 == 2 for number in drawn)
    # In proportion to the age, the mean is Σa² / Σa.
    chosen = np.array([int(k) for k in keys(ShardDataset(plain, fields=("key",))) if int(k) % 3 == 2])
    assert np.mean(drawn) == pytest.approx((chosen**2).sum() / chosen.sum(), rel=0.1)


# --- transforms ---------------------------------------------------------------------------------------------------


def test_transforms_get_hwc_arrays_and_run_in_order(plain: Path) -> None:
    seen: list[Any] = []

    def look(image: np.ndarray) -> np.ndarray:
        seen.append((type(image), image.dtype, image.shape))
        return image

    steps = [look, Resize(20), CenterCrop(16), look]
    sample = next(iter(ShardDataset(plain, transform=steps)))
    assert seen == [(np.ndarray, np.dtype(np.uint8), (32, 32, 3)), (np.ndarray, np.dtype(np.uint8), (16, 16, 3))]
    assert sample["image"].shape == (16, 16, 3)


class Noise:
    def __call__(self, image: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        return generator.integers(0, 256, (4,)).astype(np.uint8)


class NoiseModule(torch.nn.Module):
    def forward(self, image: np.ndarray, *, generator: np.random.Generator) -> torch.Tensor:
        return torch.from_numpy(generator.random(3))


@pytest.mark.parametrize("transform", [Noise(), NoiseModule()])
def test_a_callable_that_takes_a_generator_gets_one_per_place(plain: Path, transform: Any) -> None:
    def epoch(**options: Any) -> list[Any]:
        return [s["image"].tolist() for s in ShardDataset(plain, transform=transform, **options)]

    alone = epoch()
    assert len({tuple(values) for values in alone}) == 40
    ranks = [epoch(rank=rank, world_size=2) for rank in range(2)]
    assert [ranks[place % 2][place // 2] for place in range(40)] == alone
    assert epoch(seed=1) != alone


def test_an_epoch_later_the_same_place_draws_anew(plain: Path) -> None:
    dataset = ShardDataset(plain, transform=Noise(), shuffle=False)
    first, second = ([sample["image"].tolist() for sample in dataset] for _ in range(2))
    assert not [place for place in range(40) if first[place] == second[place]]


def test_a_sample_drawn_twice_is_augmented_differently(plain: Path) -> None:
    weights = [1.0] + [0.0] * 39
    dataset = ShardDataset(plain, weights=weights, transform=[RandomResizedCrop(16), RandomHorizontalFlip()])
    assert len({sample["image"].numpy().tobytes() for sample in dataset}) > 30


def test_transforms_of_whole_samples_see_and_change_everything(rich: Path) -> None:
    def flip(sample: dict[str, Any], generator: np.random.Generator) -> dict[str, Any]:
        if generator.random() < 0.5:
            return {
                **sample,
                "image": sample["image"][:, ::-1],
                "mask": sample["mask"][:, ::-1],
                "flipped": np.bool_(1),
            }
        return {**sample, "flipped": np.bool_(0)}

    flips = 0
    for sample in ShardDataset(rich, fields=("mask", "image", "key"), transform_sample=flip):
        number, flipped = int(sample["key"]), bool(sample["flipped"])
        flips += flipped
        assert np.array_equal(sample["mask"].numpy(), mask(number)[:, ::-1] if flipped else mask(number))
    assert 0 < flips < 16


def test_errors_in_transforms_are_raised_whatever_the_policy(plain: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        list(ShardDataset(plain, transform=lambda image: 1 / 0, on_error="mask"))
    with pytest.raises(UsageError, match="mapping"):
        list(ShardDataset(plain, transform_sample=lambda sample: None))
    with pytest.raises(UsageError, match="left out 'label'"):
        list(ShardDataset(plain, transform_sample=lambda sample: {"image": sample["image"]}, as_tuple=True))


def test_the_trainers_own_generators_are_left_alone(plain: Path) -> None:
    random.seed(1)
    torch.manual_seed(1)
    np.random.seed(1)
    before = random.getstate(), torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[union-attr,index]
    list(ShardDataset(plain, transform=lambda image: image))
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert np.array_equal(np.random.get_state()[1], before[2])  # type: ignore[index]


# --- damage -------------------------------------------------------------------------------------------------------


def test_a_damaged_sample_is_named(tmp_path: Path) -> None:
    make_dataset(tmp_path, format="png")
    key = damage(tmp_path, "train", 3)
    with pytest.raises(DamagedError, match=rf"train-000000\.tar, sample {key}, field png"):
        list(ShardDataset(tmp_path, batch_size=4))


def test_a_damaged_sample_can_be_masked_and_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_dataset(tmp_path, format="png")
    bad = {damage(tmp_path, "train", 3), damage(tmp_path, "train", 5)}
    dataset = ShardDataset(tmp_path, batch_size=4, fields=("image", "label", "key"), on_error="mask")
    with caplog.at_level(logging.WARNING, "shardforge.stream"):
        batches = list(dataset)
    assert len(batches) == len(dataset) == 4
    rows = [
        row
        for b in batches
        for row in zip(b["key"], b["valid"].tolist(), b["label"].tolist(), b["image"], strict=True)
    ]
    assert {key for key, valid, *_ in rows if valid} == {f"{n:09d}" for n in range(16)} - bad
    for key, valid, label, image in rows:
        assert valid == (key != "")
        assert (label == -100) == (not valid)
        assert bool(image.any()) == valid
    assert dataset.masked_errors == 2
    assert len(caplog.records) == 1
    assert "sample 0000000" in caplog.text
    list(dataset)
    assert dataset.masked_errors == 4


def test_single_samples_can_be_masked(tmp_path: Path) -> None:
    make_dataset(tmp_path, format="png")
    damage(tmp_path, "train", 0)
    samples = list(ShardDataset(tmp_path, on_error="mask", shuffle=False))
    assert [bool(sample["valid"]) for sample in samples] == [False] + [True] * 15
    assert samples[0]["image"].shape == (32, 32, 3)


def test_a_missing_shard_masks_its_samples(tmp_path: Path) -> None:
    make_dataset(tmp_path, format="png")
    (tmp_path / "train-000001.tar").unlink()
    dataset = ShardDataset(tmp_path, batch_size=4, on_error="mask", fields=("image", "key"))
    assert sum(int(batch["valid"].sum()) for batch in dataset) == 8
    with pytest.raises(StorageError, match=r"train-000001\.tar"):
        list(ShardDataset(tmp_path, batch_size=4))


@pytest.mark.parametrize("batch_size", [4, None])
def test_a_lost_first_shard_is_masked_however_large(tmp_path: Path, batch_size: int | None) -> None:
    make_dataset(tmp_path, {"train": [130, 6]}, format="png")
    (tmp_path / "train-000000.tar").unlink()
    dataset = ShardDataset(tmp_path, batch_size=batch_size, on_error="mask", shuffle=False, fields=("image", "key"))
    given = list(dataset)
    assert sum(int(one["valid"].sum()) for one in given) == 6
    assert all(one["image"].shape[-3:] == (32, 32, 3) for one in given)
    assert dataset.masked_errors == 130


def test_a_dataset_in_which_nothing_can_be_read_is_an_error_even_when_masking(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [3]}, format="png")
    for row in range(3):
        damage(tmp_path, "train", row)
    with pytest.raises(DamagedError):
        list(ShardDataset(tmp_path, on_error="mask"))


# --- pickling -----------------------------------------------------------------------------------------------------


def test_a_pickled_dataset_reads_the_same(rich: Path) -> None:
    dataset = ShardDataset(
        rich,
        fields=("image", "key", "age", "txt"),
        where=pc.field("age") > 2,
        weights="age",
        transform=[RandomResizedCrop(8)],
        seed=5,
    )
    dataset.set_epoch(3)
    list(zip(range(3), dataset, strict=False))
    copy = pickle.loads(pickle.dumps(dataset))  # noqa: S301
    pairs = list(zip(dataset, copy, strict=True))
    assert pairs
    for one, other in pairs:
        assert one["key"] == other["key"]
        assert torch.equal(one["image"], other["image"])
