"""Resuming in the middle of an epoch, on other numbers of ranks, workers and rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from shardforge.errors import UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def given(batch: dict[str, Any]) -> list[str]:
    return [key for key in batch["key"] if key]


def epoch_of(path: Path, number: int) -> list[str]:
    """Keys of an uninterrupted epoch, in the order of its places."""
    dataset = ShardDataset(path, fields=("key",), tail="mask")
    dataset.set_epoch(number)
    return [sample["key"] for sample in dataset]


def loaders(path: Path, world: int, batch_size: int, **options: Any) -> list[ShardLoader]:
    options = {"fields": ("key",), "tail": "mask", **options}
    return [ShardLoader(path, "train", batch_size, rank=rank, world_size=world, **options) for rank in range(world)]


@pytest.mark.parametrize(
    ("first", "second", "workers"),
    [((1, 7), (1, 7), 0), ((1, 7), (3, 2), 0), ((2, 3), (1, 5), 0), ((2, 3), (3, 4), 2), ((3, 1), (2, 8), 1)],
)
def test_what_was_not_handed_over_follows_on_any_topology(
    plain: Path, first: tuple[int, int], second: tuple[int, int], workers: int
) -> None:
    before, states = [], []
    for loader in loaders(plain, *first, workers=workers):
        with loader:
            loader.set_epoch(5)
            before += [key for _, batch in zip(range(3), loader, strict=False) for key in given(batch)]
            states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    assert states[0]["position"] == len(before) == 3 * first[0] * first[1]
    after, next_epoch = [], []
    for loader in loaders(plain, *second, workers=workers):
        with loader:
            loader.load_state_dict(states[0])
            assert loader.epoch == 5
            steps = -(-(40 - len(before)) // (second[0] * second[1]))
            assert len(loader) == steps
            batches = list(loader)
            assert len(batches) == steps
            after += [key for batch in batches for key in given(batch)]
            assert (loader.epoch, len(loader)) == (6, -(-40 // (second[0] * second[1])))
            next_epoch += [key for batch in loader for key in given(batch)]
    expected = epoch_of(plain, 5)
    assert sorted(before) == sorted(expected[: len(before)])
    assert sorted(after) == sorted(expected[len(before) :])
    assert sorted(next_epoch) == sorted(expected)


def test_the_position_counts_what_was_handed_over_not_what_was_made(plain: Path) -> None:
    for workers in (0, 2):
        with ShardLoader(plain, "train", 4, fields=("key",), workers=workers, prefetch=4) as loader:
            batches = iter(loader)
            assert loader.state_dict()["position"] == 0
            for step in range(1, 10):
                next(batches)
                assert loader.state_dict()["position"] == 4 * step
            next(batches)
            state = loader.state_dict()
            assert (state["epoch"], state["position"]) == (1, 0)


def test_crops_and_flips_go_on_as_they_would_have(plain: Path) -> None:
    options: dict[str, Any] = {
        "transform": [RandomResizedCrop(12), RandomHorizontalFlip()],
        "fields": ("image", "key"),
    }
    whole = [batch["image"] for batch in ShardLoader(plain, "train", 4, **options)]
    loader = ShardLoader(plain, "train", 4, **options)
    for _ in zip(range(3), loader, strict=False):
        pass
    other = ShardLoader(plain, "train", 7, **options)
    other.load_state_dict(loader.state_dict())
    assert torch.equal(torch.cat([batch["image"] for batch in other]), torch.cat(whole)[12:40])


def test_the_usual_loop_over_epochs_keeps_a_loaded_position(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 10, fields=("key",))
    loader.set_epoch(2)
    for _ in zip(range(2), loader, strict=False):
        pass
    state = loader.state_dict()
    resumed = ShardLoader(plain, "train", 10, fields=("key",))
    resumed.load_state_dict(state)
    steps = []
    for epoch in range(resumed.epoch, 5):
        resumed.set_epoch(epoch)
        steps.append(sum(1 for _ in resumed))
    assert steps == [2, 4, 4]
    resumed.load_state_dict(state)
    resumed.set_epoch(3)
    assert len(resumed) == 4


def test_a_resumed_pass_left_early_begins_again_where_the_state_was(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 4, fields=("key",))
    first = next(iter(loader))
    loader.load_state_dict({**loader.state_dict(), "position": 8})
    second = next(iter(loader))["key"]
    assert loader.state_dict()["position"] == 12
    assert next(iter(loader))["key"] == second != first["key"]


def test_less_than_a_global_batch_left_is_dropped_like_any_tail(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 16, fields=("key",), tail="drop")
    state = {**loader.state_dict(), "epoch": 1, "position": 30}
    loader.load_state_dict(state)
    assert (len(loader), loader.epoch) == (0, 1)
    assert list(loader) == []
    assert (loader.epoch, len(loader)) == (2, 2)
    assert len(list(loader)) == 2


def test_saving_takes_microseconds_and_loading_reads_no_samples(plain: Path, tmp_path: Path) -> None:
    loader = ShardLoader(plain, "train", 4)
    next(iter(loader))
    begun = time.perf_counter()
    for _ in range(100):
        state = loader.state_dict()
    assert (time.perf_counter() - begun) / 100 < 1e-3
    for name in plain.iterdir():
        if name.suffix != ".tar":
            (tmp_path / name.name).write_bytes(name.read_bytes())
    without_shards = ShardLoader(tmp_path, "train", 4)
    without_shards.load_state_dict(state)
    assert len(without_shards) == 9
    assert without_shards.plan().start == 4


# --- ShardDataset in a plain DataLoader -----------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_size", "workers"), [(None, 0), (None, 2), (3, 0), (3, 2)])
def test_the_training_loop_says_what_it_consumed(plain: Path, batch_size: int | None, workers: int) -> None:
    def reader(rank: int, world: int, size: int | None) -> ShardDataset:
        return ShardDataset(plain, fields=("key",), tail="mask", rank=rank, world_size=world, batch_size=size)

    before, state = [], {}
    for rank in range(2):
        dataset = reader(rank, 2, batch_size)
        dataset.set_epoch(3)
        seen = [
            batch["key"]
            for _, batch in zip(range(5), DataLoader(dataset, batch_size=None, num_workers=workers), strict=False)
        ]
        before += seen if batch_size is None else [key for keys in seen for key in keys]
        state = dataset.state_dict(consumed=5)
    assert (state["epoch"], state["position"]) == (3, len(before))
    after = []
    for rank in range(3):
        dataset = reader(rank, 3, 4)
        dataset.load_state_dict(state)
        assert len(dataset) == -(-(40 - len(before)) // 12)
        found = [key for batch in DataLoader(dataset, batch_size=None, num_workers=workers) for key in given(batch)]
        after += found
        assert dataset.epoch == 4
        assert len(dataset) == 4
    assert sorted(before + after) == sorted(epoch_of(plain, 3))
    assert set(before) == set(epoch_of(plain, 3)[: len(before)])


def test_without_workers_the_dataset_counts_itself(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=4)
    assert dataset.state_dict()["position"] == 0
    for _ in zip(range(3), dataset, strict=False):
        pass
    assert dataset.state_dict()["position"] == dataset.state_dict(consumed=3)["position"] == 12
    assert dataset.state_dict(consumed=2)["position"] == 8
    list(dataset)
    state = dataset.state_dict()
    assert (state["epoch"], state["position"]) == (1, 0)
    assert dataset.state_dict(consumed=10, epoch=0) == state


def test_what_only_the_training_loop_can_know_is_asked_for(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=10)
    batches = iter(DataLoader(dataset, batch_size=None, num_workers=1))
    list(batches)
    with pytest.raises(UsageError, match=r"consumed="):
        dataset.state_dict()
    with pytest.raises(UsageError, match=r"epoch="):
        dataset.state_dict(consumed=0)
    assert dataset.state_dict(consumed=0, epoch=0)["epoch"] == 0
    assert dataset.state_dict(consumed=3)["position"] == 30
    assert dataset.state_dict(consumed=4)["epoch"] == 1
    with pytest.raises(UsageError, match="4 steps"):
        dataset.state_dict(consumed=5)


def test_a_pickled_dataset_goes_on_where_its_original_would(plain: Path) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=4)
    dataset.load_state_dict({**dataset.state_dict(), "epoch": 2, "position": 20})
    expected = epoch_of(plain, 2)[20:]
    for method in ("spawn", "forkserver"):
        found = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=method)
        assert [key for batch in found for key in batch["key"]] == expected
        dataset.load_state_dict({**dataset.state_dict(consumed=0, epoch=2), "position": 20})
