"""Batches are made the short way or the careful one, with the same result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import shardforge
from shardforge import DamagedError, ShardDataset, ShardLoader
from shardforge.errors import UsageError
from shardforge.shards import index, layout
from shardforge.shards.manifest import LabelKind
from shardforge.stream.batches import BatchJob
from shardforge.transforms import CenterCrop, Pad, RandomHorizontalFlip, RandomResizedCrop, Resize
from tests.datasets import SITES, make_dataset, multi_label, picture

MANY = 2500
"""Samples, of which some 1 000 are gathered at once."""
STEPS: dict[str, list[Any]] = {
    "crop and flip": [RandomResizedCrop(24), RandomHorizontalFlip()],
    "resize in two steps": [Resize(40), CenterCrop(24), RandomHorizontalFlip(1)],
    "into the batch twice": [Resize((24, 24)), RandomHorizontalFlip(1), RandomResizedCrop(24), Pad(30, 7)],
    "nothing to do": [Pad(90)],
}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many")
    make_dataset(root, {"train": [1000, MANY - 1000]}, format="npy", size=(5, 6))
    return root


def _careful_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are made the careful way from now on."""
    rows: list[int] = []
    inner = BatchJob._make_row

    def counted(job: BatchJob, content: Any, row: int) -> None:
        rows.append(row)
        inner(job, content, row)

    monkeypatch.setattr(BatchJob, "_make_row", counted)
    return rows


@pytest.mark.parametrize("form", ["npy", "png", "jpg"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_both_ways_give_the_same(
    form: str, steps: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dataset(tmp_path, {"train": [40]}, format=form, pixels=lambda number: picture(number, (90, 80)))
    singly = {
        sample["key"]: sample["image"] for sample in ShardDataset(tmp_path, transform=steps, fields=("image", "key"))
    }
    careful = _careful_rows(monkeypatch)
    found = 0
    for batch in ShardDataset(tmp_path, batch_size=10, transform=steps, fields=("image", "key")):
        assert all(torch.equal(image, singly[key]) for image, key in zip(batch["image"], batch["key"], strict=True))
        found += len(batch["key"])
    assert found == 40
    # The first row of each batch shows how large the memory has to be.
    assert careful == [0] * 4


@pytest.mark.parametrize("form", ["npy", "jpg"])
def test_rows_of_another_kind_or_none_are_made_the_careful_way(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_dataset(tmp_path, {"train": [30]}, format=form, pixels=lambda number: picture(number, (90, 80)))
    _spoil(tmp_path, [3, 17, 18])
    steps = [RandomResizedCrop(24), RandomHorizontalFlip()]
    how: dict[str, Any] = {"transform": steps, "fields": ("image", "key"), "on_error": "mask", "shuffle": False}
    singly = {sample["key"]: sample["image"] for sample in ShardDataset(tmp_path, **how) if sample["valid"]}
    assert len(singly) == 27
    careful = _careful_rows(monkeypatch)
    with ShardLoader(tmp_path, batch_size=16, tail="mask", threads=1, **how) as loader:
        batches = list(loader)
    missing = [row for batch in batches for row in range(16) if not batch["valid"][row]]
    assert missing == [3, 1, 2, 14, 15]
    assert careful == [0, 3, 0, 1, 2]
    for batch in batches:
        for row in range(16):
            key = batch["key"][row]
            expected = singly[key] if batch["valid"][row] else torch.zeros(24, 24, 3, dtype=torch.uint8)
            assert torch.equal(batch["image"][row], expected)


def test_what_is_wrong_is_told_with_the_sample(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [8]}, format="npy")
    _spoil(tmp_path, [5])
    loader = ShardLoader(tmp_path, batch_size=8, transform=[Resize((24, 24))], shuffle=False, threads=1)
    with loader, pytest.raises(DamagedError, match="sample 000000005, field npy"):
        next(iter(loader))
    with (
        ShardLoader(tmp_path, batch_size=4, transform=[Resize((48, 48)), Pad(30)], shuffle=False, threads=1) as small,
        pytest.raises(Exception, match=r"Pad\(\(30, 30\)\) of an image of 48 × 48"),
    ):
        next(iter(small))


def test_pictures_of_one_shape_each(tmp_path: Path) -> None:
    """A batch of images of several shapes cannot be stacked, whichever of them come first."""
    make_dataset(
        tmp_path, {"train": [8]}, format="npy", pixels=lambda number: picture(number, (20 + number // 7, 30))
    )
    loader = ShardLoader(tmp_path, batch_size=8, transform=[RandomHorizontalFlip()], shuffle=False, threads=1)
    with loader, pytest.raises(Exception, match="21"):
        next(iter(loader))


class Inverted(RandomResizedCrop):
    """A user's own, which does more when it is called."""

    def __call__(self, image: np.ndarray, *, generator: np.random.Generator | None = None) -> np.ndarray:
        return 255 - super().__call__(image, generator=generator)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_a_class_derived_from_a_built_in_transform_is_called(batch_size: int | None, tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [8]}, format="npy", pixels=lambda number: np.full((40, 40, 3), 200, np.uint8))
    (image,) = {
        int(value)
        for sample in ShardDataset(tmp_path, transform=Inverted(24), batch_size=batch_size)
        for value in sample["image"].unique()
    }
    assert image == 55


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int8, np.bool_, np.float16, np.float64])
def test_arrays_of_other_types_are_cropped_and_mirrored(dtype: type, tmp_path: Path) -> None:
    def pixels(number: int) -> np.ndarray:
        return picture(number, (40, 40)).astype(dtype)

    make_dataset(tmp_path, {"train": [8]}, format="npy", pixels=pixels)
    steps = [CenterCrop(32), RandomHorizontalFlip(1)]
    for batch in ShardDataset(tmp_path, batch_size=4, transform=steps, fields=("image", "key")):
        for image, key in zip(batch["image"].numpy(), batch["key"], strict=True):
            assert np.array_equal(image, pixels(int(key))[4:36, 4:36][:, ::-1])


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.float16])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_type_that_cannot_be_resized_is_named(dtype: type, batch_size: int | None, tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [8]}, format="npy", pixels=lambda number: np.ones((40, 40, 3), dtype))
    dataset = ShardDataset(tmp_path, batch_size=batch_size, transform=RandomResizedCrop(24))
    with pytest.raises(UsageError, match=f"an image of {np.dtype(dtype)} cannot be resized. Convert it before"):
        next(iter(dataset))


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_transform_that_returns_nothing_is_named(batch_size: int | None, plain: Path) -> None:
    def forgetful(image: np.ndarray) -> None:
        image.sum()

    with pytest.raises(UsageError, match=r"forgetful.* returned nothing"):
        next(iter(ShardDataset(plain, batch_size=batch_size, transform=[Resize((24, 24)), forgetful])))


def _spoil(root: Path, numbers: list[int]) -> None:
    """Overwrites the beginnings of some images of the split ``train``, which has one shard."""
    dataset = shardforge.open(root)
    offsets = dataset.splits["train"].index.extents(dataset.manifest.image_field, np.array(numbers)).offset
    with open(layout.tar_path(root, "train-000000"), "r+b") as tar:
        for offset in offsets.tolist():
            tar.seek(offset)
            tar.write(b"Z" * 40)


@pytest.mark.parametrize("batch_size", [7, 300, 600, 2048])
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_of_more_samples_than_are_gathered_at_once(batch_size: int, threads: int, many: Path) -> None:
    crop = RandomResizedCrop(4)
    fields = ("image", "key", "age")
    options: dict[str, Any] = {"transform": crop, "fields": fields, "tail": "mask"}
    singly = {sample["key"]: sample for sample in ShardDataset(many, **options)}
    with ShardLoader(many, batch_size=batch_size, threads=threads, **options) as loader:
        plan = loader.plan(0)
        batches = list(loader)
    assert len(batches) == plan.steps == -(-MANY // batch_size)
    assert [batch["key"] for batch in batches] == [plan.keys(step, 0) for step in range(plan.steps)]
    given = []
    for batch in batches:
        for row in torch.nonzero(batch["valid"]).ravel().tolist():
            key = batch["key"][row]
            assert torch.equal(batch["image"][row], singly[key]["image"])
            assert batch["age"][row] == singly[key]["age"] == int(key)
            given.append(int(key))
    assert sorted(given) == list(range(MANY))


@pytest.mark.parametrize("batch_size", [4, 32])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["multi", "number"])
def test_a_damaged_label_ends_a_pass_at_its_batch(
    kind: LabelKind, workers: int, batch_size: int, tmp_path: Path
) -> None:
    make_dataset(tmp_path, {"train": [50, 46]}, format="npy", size=(5, 6), label_kind=kind, label_size=2)
    path = layout.index_path(tmp_path, "train")
    order = ShardDataset(tmp_path, batch_size=batch_size).plan(0)
    number = int(order.samples(5 * 4 // batch_size + 1, 0)[1])
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        table = reader.read_all()
    labels = table["label"].to_pylist()
    labels[number] = [77] if kind == "multi" else [1.0, 2.0, 3.0]
    place = table.schema.get_field_index("label")
    table = table.set_column(place, table.schema.field("label"), pa.array(labels, table.schema.field("label").type))
    path.unlink()
    index.write(path, [table], table.schema)
    given: list[Any] = []
    with pytest.raises(DamagedError, match=f"sample {number:09d}"):
        given.extend(ShardDataset(tmp_path, fields=("label",)))
    assert len(given) == (5 * 4 // batch_size + 1) * batch_size + 1
    given.clear()
    loader = ShardLoader(tmp_path, batch_size=batch_size, workers=workers, threads=1, fields=("label",))
    with loader, pytest.raises(DamagedError, match=f"sample {number:09d}"):
        given.extend(loader)
    assert len(given) == 5 * 4 // batch_size + 1


@pytest.mark.parametrize("workers", [0, 1])
def test_rows_belong_to_whoever_collates_them(workers: int, tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [9]}, format="npy", pixels=picture, label_kind="number", label_size=2)
    how: dict[str, Any] = {"workers": workers, "threads": 1, "tail": "mask", "context": "fork"}
    with ShardLoader(tmp_path, batch_size=4, fields=("image", "label"), collate=_changed, **how) as loader:
        for _ in range(2):
            *whole, last = loader
            for batch in whole:
                assert batch["image"][:, 4:].any()
            for batch in (*whole, last):
                assert (batch["image"][:, :4] == 1).all()
            assert last["valid"].tolist() == [True, False, False, False]
            assert (last["image"][1:, 4:] == 0).all()
            assert (last["label"][1:] == -99).all()


def _changed(rows: Any) -> dict[str, Any]:
    for row in rows:
        row["image"][:4] = 0
        row["image"][:4] += 1
        row["label"] += 1
    return {name: torch.from_numpy(np.stack([row[name] for row in rows])) for name in rows[0]}


def test_what_takes_much_memory_is_gathered_batch_by_batch(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [40]}, label_kind="multi", sidecars=["txt"])
    names = {"image": True, "key": True, "age": True, "txt": True, "label": False, "site": False}
    for name, light in names.items():
        assert ShardDataset(tmp_path, fields=(name,)).source.maker.fields[name].light == light
    for batch in ShardDataset(tmp_path, batch_size=4, fields=("key", "label", "site")):
        assert batch["site"] == [SITES[int(key) % 3] for key in batch["key"]]
        found = [row.nonzero().flatten().tolist() for row in batch["label"]]
        assert found == [multi_label(int(key)) for key in batch["key"]]
