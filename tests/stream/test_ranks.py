"""Rank and world size are found when they are needed."""

from __future__ import annotations

import pickle

import pytest
import torch.distributed as dist

from shardforge.errors import UsageError
from shardforge.stream.ranks import Ranks


@pytest.fixture(autouse=True)
def no_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


def test_alone_by_default() -> None:
    assert Ranks.of(None, None).find() == (0, 1)


def test_the_environment_is_read_late(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks.of(None, None)
    copy = pickle.loads(pickle.dumps(ranks))  # noqa: S301
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert ranks.find() == copy.find() == (3, 8)


def test_the_process_group_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Ranks.of(None, None)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert ranks.find() == (0, 1)
    finally:
        dist.destroy_process_group()
    assert ranks.find() == (3, 8)


def test_given_numbers_count_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert Ranks.of(1, 2).find() == (1, 2)
    assert pickle.loads(pickle.dumps(Ranks.of(1, 2))).find() == (1, 2)  # noqa: S301


@pytest.mark.parametrize(("rank", "world"), [(0, None), (None, 2), (2, 2), (-1, 2), (0, 0)])
def test_senseless_numbers_are_refused(rank: int | None, world: int | None) -> None:
    with pytest.raises(UsageError, match="rank"):
        Ranks.of(rank, world)


@pytest.mark.parametrize(("there", "missing"), [("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")])
def test_half_an_environment_is_refused(there: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(there, "1")
    with pytest.raises(UsageError, match=f"{there} is set in the environment, and {missing} is not"):
        Ranks.of(None, None).find()
    assert Ranks.of(0, 1).find() == (0, 1)


def test_a_garbled_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="RANK='first'"):
        Ranks.of(None, None).find()
