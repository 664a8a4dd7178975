"""Which samples take part, and how often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from shardforge.errors import DamagedError, UsageError
from shardforge.stream.reader import Split, open_dataset
from shardforge.stream.select import choose_weights, select
from tests.datasets import make_dataset


@pytest.fixture
def train(plain: Path) -> Split:
    return open_dataset(plain).splits["train"]


def ages(split: Split) -> np.ndarray:
    return np.array([int(sample["key"]) for sample in split])


def test_an_expression_chooses_the_samples_for_which_it_is_true(train: Split) -> None:
    ids = select(train, (pc.field("age") >= 10) & (pc.field("site") == "west"))
    assert ids is not None
    wanted = [i for i, age in enumerate(ages(train)) if age >= 10 and age % 3 == 2]
    assert ids.tolist() == wanted


def test_null_is_not_true(rich: Path) -> None:
    split = open_dataset(rich).splits["train"]
    ids = select(split, pc.field("txt_size") > 0)
    assert ids is not None
    assert [int(split[int(i)]["key"]) % 3 > 0 for i in ids] == [True] * 10


def test_without_an_expression_all_take_part(train: Split) -> None:
    assert select(train, None) is None


@pytest.mark.parametrize(
    ("where", "match"),
    [
        (pc.field("weight") > 3, "columns are: .*age"),
        (pc.field("age") > "x", "age"),
        (pc.field("age") + 1, "not true or false"),
        (pc.field("age") > 10_000, "none of the 40 samples"),
        ("age > 3", "no expression"),
    ],
)
def test_useless_expressions_are_refused(train: Split, where: object, match: str) -> None:
    with pytest.raises(UsageError, match=match):
        select(train, where)  # type: ignore[arg-type]


def test_a_damaged_parquet_is_named(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    (tmp_path / "train-000001.parquet").write_bytes(b"PAR1 no longer")
    with pytest.raises(DamagedError, match=r"train-000001\.parquet"):
        select(open_dataset(tmp_path).splits["train"], pc.field("age") > 3)


def test_weights_may_be_numbers_or_a_column(train: Split) -> None:
    given = choose_weights(train, range(40), None)
    assert given is not None
    assert given.tolist() == list(range(40))
    column = choose_weights(train, "age", np.array([1, 5]))
    assert column is not None
    assert column.tolist() == [ages(train)[1], ages(train)[5]]


def test_balanced_weights_give_every_class_the_same_sum(train: Split) -> None:
    ids = select(train, pc.field("age") < 30)
    weights = choose_weights(train, "balanced", ids)
    assert ids is not None
    assert weights is not None
    labels = ages(train)[ids] % 4
    assert [weights[labels == label].sum() for label in range(4)] == pytest.approx([1] * 4)


@pytest.mark.parametrize("weights", ["site", "nothing", "txt", range(39), [["a"]], [[1.0]] * 40])
def test_unusable_weights_are_refused(train: Split, weights: object) -> None:
    with pytest.raises(UsageError, match="weights"):
        choose_weights(train, weights, None)  # type: ignore[arg-type]


def test_balancing_needs_classes(tmp_path: Path) -> None:
    make_dataset(tmp_path, label_kind="multi")
    with pytest.raises(UsageError, match="single-class"):
        choose_weights(open_dataset(tmp_path).splits["train"], "balanced", None)
