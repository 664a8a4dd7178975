"""What a state says, and which states are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from shardforge.errors import UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from tests.datasets import make_dataset


def test_a_state_is_a_few_plain_numbers_and_texts(plain: Path) -> None:
    state = ShardLoader(plain, batch_size=4, weights="age", shuffle=True).state_dict()
    assert json.loads(json.dumps(state)) == state
    assert all(isinstance(value, int | str) for value in state.values())
    assert (state["epoch"], state["position"], state["seed"], state["split"]) == (0, 0, 0, "train")
    assert len(json.dumps(state)) < 500


def test_a_state_is_the_same_on_every_rank(plain: Path) -> None:
    states = []
    for rank in range(3):
        loader = ShardLoader(plain, batch_size=4, rank=rank, world_size=3)
        next(iter(loader))
        states.append(loader.state_dict())
        loader.close()
    assert states[0] == states[1] == states[2]
    assert states[0]["position"] == 12


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"seed": 1}, "seed"),
        ({"split": "val"}, "split"),
        ({"shuffle": False}, "shuffle"),
        ({"shuffle": 8}, "shuffle"),
        ({"where": pc.field("age") > 3}, "where"),
        ({"weights": "age"}, "weights"),
    ],
)
def test_a_state_of_another_order_is_refused_by_the_fields_name(
    plain: Path, options: dict[str, Any], field: str
) -> None:
    state = ShardLoader(plain, batch_size=4).state_dict()
    with pytest.raises(UsageError, match=rf"\({field}\)"):
        ShardLoader(plain, batch_size=4, **options).load_state_dict(state)
    with pytest.raises(UsageError, match=rf"\({field}\)"):
        ShardDataset(plain, **options).load_state_dict(state)


def test_a_state_of_another_dataset_is_refused(plain: Path, tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [16, 0, 7, 17]}, format="png", size=(8, 8))
    state = ShardLoader(plain, batch_size=4).state_dict()
    with pytest.raises(UsageError, match=r"another dataset \(fingerprint\)"):
        ShardLoader(tmp_path, batch_size=4).load_state_dict(state)


@pytest.mark.parametrize("change", [{"order_version": 99}, {"state_version": 99}])
def test_a_state_of_another_version_is_refused(plain: Path, change: dict[str, int]) -> None:
    loader = ShardLoader(plain, batch_size=4)
    with pytest.raises(UsageError, match=next(iter(change))):
        loader.load_state_dict({**loader.state_dict(), **change})


@pytest.mark.parametrize(
    "change", [{"position": 40}, {"position": -1}, {"epoch": -1}, {"epoch": "1"}, {"position": None}, {"epoch": True}]
)
def test_a_state_that_says_the_impossible_is_refused(plain: Path, change: dict[str, Any]) -> None:
    loader = ShardLoader(plain, batch_size=4)
    with pytest.raises(UsageError, match=next(iter(change))):
        loader.load_state_dict({**loader.state_dict(), **change})
    with pytest.raises(UsageError, match="cannot be loaded"):
        loader.load_state_dict({})


@pytest.mark.parametrize("name", ["epoch", "position"])
def test_a_state_that_lacks_its_place_is_refused(plain: Path, name: str) -> None:
    loader = ShardLoader(plain, batch_size=4)
    state = {key: value for key, value in loader.state_dict().items() if key != name}
    with pytest.raises(UsageError, match=f"it has no {name}"):
        loader.load_state_dict(state)
