"""``inspect --mixing``: distinct classes per batch in every order, against the ideal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shardforge.errors import UsageError
from shardforge.inspect.mixing import Mixing, ideal_classes, measure_mixing
from shardforge.shards import index, layout
from shardforge.shards.manifest import FieldInfo, InputInfo, LabelInfo, Manifest, ShardInfo, SplitInfo
from tests.datasets import make_dataset
from tests.pictures import run


def labels_only(root: Path, shards: Sequence[Sequence[int]]) -> Path:
    """A manifest and an index over samples that nobody has stored: labels are all that is looked at."""
    info, labels = LabelInfo("class"), [label for shard in shards for label in shard]
    target = index.schema(("jpg",), info)
    count = len(labels)
    columns = {
        "key": [f"{number:09d}" for number in range(count)],
        "shard": [number for number, shard in enumerate(shards) for _ in shard],
        "position": [place for shard in shards for place in range(len(shard))],
        "label": labels,
        "jpg_offset": [512] * count,
        "jpg_size": [1] * count,
    }
    arrays = [pa.array(columns[column.name], column.type) for column in target]
    root.mkdir(exist_ok=True)
    index.write(layout.index_path(root, "train"), [pa.Table.from_arrays(arrays, schema=target)], target)
    infos = tuple(ShardInfo(f"train-{n:06d}", len(shard), 1, str(n), "") for n, shard in enumerate(shards))
    split = SplitInfo(count, 0, 0, 0, len(shards), "", infos)
    classes = {str(number): number for number in range(max(labels) + 1)}
    fields = {"jpg": FieldInfo("image")}
    manifest = Manifest({}, 0, fields, info, 3, classes, InputInfo(count, ""), {"train": split})
    replace(manifest, fingerprint="0" * 64).write(root / layout.MANIFEST)
    return root


def means(found: Mixing) -> dict[str, float]:
    return {order.order: order.mean for order in found.splits[0].orders}


@pytest.fixture(scope="module")
def sorted_by_class(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 classes of 1 000 samples, one in each shard: the worst that a data set can be."""
    return labels_only(tmp_path_factory.mktemp("sorted"), [[label] * 1000 for label in range(100)])


def test_data_sorted_by_class_give_the_figures_of_the_design(sorted_by_class: Path) -> None:
    found = measure_mixing(sorted_by_class, 256)
    assert found.splits[0].batches == 390
    assert found.splits[0].ideal == pytest.approx(92.4, abs=0.05)
    mean = means(found)
    assert mean["whole split (shuffle=True)"] == pytest.approx(92.4, abs=0.5)
    assert mean["windows of 16,384 (shuffle=16384)"] == pytest.approx(81, abs=2)
    assert mean["shuffle buffer of 1,000, for comparison"] == pytest.approx(6.4, abs=0.5)
    runs = [len({place // 1000 for place in range(b * 256, (b + 1) * 256)}) for b in range(390)]
    assert mean["as stored (shuffle=False)"] == pytest.approx(sum(runs) / 390)


@pytest.mark.parametrize(
    ("sizes", "batch"), [([3, 2, 1], 2), ([3, 2, 1], 4), ([1, 1, 1, 1], 3), ([4], 2), ([5, 1], 6)]
)
def test_the_ideal_is_the_mean_over_all_draws(sizes: list[int], batch: int) -> None:
    labels = [label for label, size in enumerate(sizes) for _ in range(size)]
    draws = [len({label for _, label in draw}) for draw in itertools.combinations(enumerate(labels), batch)]
    assert ideal_classes(sizes, batch) == pytest.approx(np.mean(draws))


def test_small_splits_are_left_out_and_gaps_in_ids_do_not_count(tmp_path: Path) -> None:
    found = measure_mixing(labels_only(tmp_path, [[0, 7, 0, 7], [7, 0, 9]]), 2)
    assert (found.splits[0].classes, found.splits[0].batches) == (3, 3)
    assert means(found)["as stored (shuffle=False)"] == 2
    assert not any("windows" in order for order in means(found))


def test_what_cannot_be_measured_is_refused(tmp_path: Path) -> None:
    make_dataset(tmp_path / "numbers", label_kind="number")
    with pytest.raises(UsageError, match="labels here are none"):
        measure_mixing(tmp_path / "numbers")
    make_dataset(tmp_path / "small")
    with pytest.raises(UsageError, match="no split has 256 samples"):
        measure_mixing(tmp_path / "small")
    with pytest.raises(UsageError, match="at least 1"):
        measure_mixing(tmp_path / "small", 0)


def test_the_command_prints_a_table(sorted_by_class: Path) -> None:
    done = run("inspect", sorted_by_class, "--mixing", "--batch-size", "512")
    assert done.returncode == 0
    assert "train: 100,000 samples, 100 classes, 195 batches of 512" in done.stdout
    assert "whole split (shuffle=True)" in done.stdout
    assert json.loads(run("inspect", sorted_by_class, "--mixing", "--json").stdout)["batch_size"] == 256
    assert run("inspect", sorted_by_class, "--batch-size", "512").returncode == 2
    assert run("inspect", sorted_by_class, "--mixing", "--verify").returncode == 2
