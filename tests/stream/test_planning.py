"""The plan of an epoch is what is then read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from shardforge.stream.loader import ShardLoader


@pytest.mark.parametrize("options", [{}, {"where": pc.field("site") != "west"}, {"weights": "age"}, {"shuffle": 8}])
def test_the_plan_says_who_gets_what_at_which_step(plain: Path, options: dict) -> None:
    ranks = [
        ShardLoader(plain, "train", 3, fields=("key",), tail="mask", rank=rank, world_size=2, **options)
        for rank in range(2)
    ]
    plan = ranks[0].plan(4)
    assert (plan.epoch, plan.start, plan.world_size, plan.batch_size) == (4, 0, 2, 3)
    for rank, loader in enumerate(ranks):
        loader.set_epoch(4)
        assert [batch["key"] for batch in loader] == [plan.keys(step, rank) for step in range(plan.steps)]
        for step in range(plan.steps):
            assert plan.samples(step)[rank].tolist() == plan.samples(step, rank).tolist()
    with pytest.raises(IndexError):
        plan.samples(plan.steps)


def test_the_plan_of_a_resumed_epoch_begins_where_the_state_was(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 8, fields=("key",))
    whole = [key for batch in loader for key in batch["key"]]
    loader.load_state_dict({**loader.state_dict(), "epoch": 0, "position": 16})
    plan = loader.plan()
    assert (plan.epoch, plan.start, plan.steps, plan.dropped) == (0, 16, 3, 0)
    assert [key for step in range(3) for key in plan.keys(step, 0)] == whole[16:]
    assert loader.plan(1).start == 0


def test_a_plan_needs_no_shard(plain: Path, tmp_path: Path) -> None:
    for path in plain.iterdir():
        if path.suffix != ".tar":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert ShardLoader(tmp_path, "train", 8).plan(3).keys(0, 0) == ShardLoader(plain, "train", 8).plan(3).keys(0, 0)
