"""``ShardDataset`` in a DataLoader's worker processes: the same order, shares, crops and epochs for any topology."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import random
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
import torch.multiprocessing
from torch.utils.data import DataLoader

from shardforge.errors import DamagedError
from shardforge.stream.dataset import ShardDataset
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop
from tests.datasets import make_dataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")

ALL = list(itertools.product(range(1, 5), range(4), ["mask", "drop"]))
SOME = [(1, 3, "mask"), (2, 2, "drop"), (3, 1, "mask"), (4, 3, "drop")]
TOPOLOGIES = [pytest.param(*t, marks=[] if t in SOME else pytest.mark.long) for t in ALL]
METHODS = ["fork", "spawn", "forkserver"]


def loader(dataset: ShardDataset, workers: int, **options: Any) -> DataLoader[Any]:
    return DataLoader(dataset, num_workers=workers, **{"batch_size": None, **options})


def batches(dataset: ShardDataset, workers: int, **options: Any) -> list[list[str]]:
    return [batch["key"] for batch in loader(dataset, workers, **options)]


@pytest.mark.parametrize(("world", "workers", "tail"), TOPOLOGIES)
def test_ranks_take_equal_steps_and_give_every_sample_once(plain: Path, world: int, workers: int, tail: Any) -> None:
    ranks = []
    for rank in range(world):
        dataset = ShardDataset(plain, fields=("key",), batch_size=3, rank=rank, world_size=world, tail=tail)
        found = batches(dataset, workers)
        assert len(found) == len(dataset)
        assert all(len(batch) == 3 for batch in found)
        ranks.append(found)
    assert len({len(found) for found in ranks}) == 1
    keys = [key for found in ranks for batch in found for key in batch if key]
    assert len(keys) == len(set(keys)) == (40 if tail == "mask" else 40 - 40 % (3 * world))


@pytest.mark.parametrize(("world", "workers", "tail"), TOPOLOGIES)
def test_batches_do_not_depend_on_the_number_of_workers(plain: Path, world: int, workers: int, tail: Any) -> None:
    def dataset() -> ShardDataset:
        return ShardDataset(plain, fields=("key",), batch_size=3, rank=world - 1, world_size=world, tail=tail)

    assert batches(dataset(), workers) == [batch["key"] for batch in dataset()]


@pytest.mark.parametrize(("world", "workers"), [(1, 1), (1, 3), (3, 2)])
def test_single_samples_are_given_once_too(plain: Path, world: int, workers: int) -> None:
    keys: list[str] = []
    for rank in range(world):
        dataset = ShardDataset(plain, fields=("key",), rank=rank, world_size=world, tail="mask")
        found = [key for batch in loader(dataset, workers, batch_size=4) for key in batch["key"]]
        assert len(found) == len(dataset)
        keys += [key for key in found if key]
    assert len(keys) == len(set(keys)) == 40


@pytest.mark.parametrize("method", METHODS)
def test_every_start_method_reads_the_same_two_epochs(plain: Path, method: str) -> None:
    def dataset() -> ShardDataset:
        return ShardDataset(plain, fields=("key", "age"), batch_size=7, tail="mask")

    alone = dataset()
    expected = [[batch["key"] for batch in alone] for _ in range(2)]
    shared = dataset()
    found = loader(shared, 2, multiprocessing_context=method)
    assert [[batch["key"] for batch in found] for _ in range(2)] == expected
    assert shared.epoch == 2


@pytest.mark.parametrize("method", METHODS)
def test_set_epoch_reaches_persistent_workers(plain: Path, method: str) -> None:
    alone = ShardDataset(plain, fields=("key",), batch_size=7)
    expected = [[batch["key"] for batch in alone] for _ in range(4)]
    dataset = ShardDataset(plain, fields=("key",), batch_size=7)
    found = loader(dataset, 2, multiprocessing_context=method, persistent_workers=True)
    order = []
    for epoch in (3, 0, 2):
        dataset.set_epoch(epoch)
        order.append([batch["key"] for batch in found])
    assert order == [expected[3], expected[0], expected[2]]
    assert [batch["key"] for batch in found] == expected[3]


@pytest.mark.parametrize("persistent", [True, False])
def test_workers_agree_on_the_epoch_even_if_one_of_them_is_done_at_once(plain: Path, persistent: bool) -> None:
    # One step: worker 0 ends the epoch while the others may not even have begun.
    dataset = ShardDataset(plain, fields=("key",), batch_size=10)
    alone = ShardDataset(plain, fields=("key",), batch_size=10)
    found = loader(dataset, 4, persistent_workers=persistent, prefetch_factor=4)
    for _ in range(6):
        assert [batch["key"] for batch in found] == [batch["key"] for batch in alone]


def test_crops_and_flips_are_the_same_on_every_topology(plain: Path) -> None:
    steps = [RandomResizedCrop(16), RandomHorizontalFlip()]

    def images(workers: int, world: int = 1, **options: Any) -> dict[str, bytes]:
        out = {}
        for rank in range(world):
            dataset = ShardDataset(
                plain, fields=("image", "key"), transform=steps, tail="mask", rank=rank, world_size=world, **options
            )
            batch_size = None if "batch_size" in options else 5
            for batch in loader(dataset, workers, batch_size=batch_size):
                out.update(zip(batch["key"], (image.numpy().tobytes() for image in batch["image"]), strict=True))
        out.pop("", None)
        return out

    expected = images(0)
    assert len(set(expected.values())) == 40
    assert images(2) == images(3, batch_size=7) == images(1, world=3) == images(2, world=2, batch_size=3) == expected
    assert images(0, seed=1) != expected


def global_noise(image: np.ndarray) -> np.ndarray:
    return np.array([random.random(), np.random.random(), torch.rand(()).item()])


def test_global_generators_are_seeded_by_place_in_workers(plain: Path) -> None:
    def drawn(workers: int, rank: int = 0, world: int = 1) -> list[list[float]]:
        dataset = ShardDataset(plain, transform=global_noise, batch_size=4, rank=rank, world_size=world)
        return [row.tolist() for batch in loader(dataset, workers) for row in batch["image"]]

    alone = drawn(1)
    assert drawn(3) == alone
    assert len({tuple(row) for row in alone}) == 40
    ranks = [drawn(2, rank, 2) for rank in range(2)]
    assert [ranks[place % 2][place // 2] for place in range(40)] == alone


def test_masked_errors_of_all_workers_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_dataset(tmp_path, {"train": [6, 6, 6]}, format="png")
    (tmp_path / "train-000001.tar").write_bytes(b"")
    dataset = ShardDataset(tmp_path, batch_size=3, fields=("image", "key"), on_error="mask")
    with caplog.at_level(logging.WARNING, "shardforge.stream"):
        valid = [int(batch["valid"].sum()) for batch in loader(dataset, 2)]
    assert len(valid) == 6
    assert sum(valid) == 12
    assert dataset.masked_errors == 6


def test_errors_arrive_with_their_type_and_place(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [6, 6, 6]}, format="png")
    (tmp_path / "train-000001.tar").write_bytes(b"")
    with pytest.raises(DamagedError, match=r"train-000001\.tar, sample 0000000"):
        batches(ShardDataset(tmp_path, batch_size=3), 2)


def _rank_of_a_training_process(rank: int, dataset: ShardDataset, method: str, told: Any) -> None:
    """What torch.multiprocessing.spawn would run: the dataset arrives before the process group exists."""
    store = torch.distributed.TCPStore("localhost", told["port"], is_master=False)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    told["keys"].put((rank, batches(dataset, 1, multiprocessing_context=method)))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_know_the_rank_of_a_process_group_made_after_the_dataset(plain: Path, method: str) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=5)
    assert len(dataset) == 8
    context = torch.multiprocessing.get_context("spawn")
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    told = {"port": store.port, "keys": context.SimpleQueue()}
    ranks = [
        context.Process(target=_rank_of_a_training_process, args=(rank, dataset, method, told)) for rank in range(2)
    ]
    for process in ranks:
        process.start()
    found = dict(told["keys"].get() for _ in ranks)
    for process in ranks:
        process.join()
    for rank in range(2):
        expected = ShardDataset(plain, fields=("key",), batch_size=5, rank=rank, world_size=2)
        assert found[rank] == [batch["key"] for batch in expected]


def test_opencv_used_before_a_fork_does_not_hang_workers(plain: Path) -> None:
    for _ in range(3):
        cv2.resize(np.zeros((2000, 2000, 3), np.uint8), (3000, 3000))
    dataset = ShardDataset(plain, batch_size=8, transform=RandomResizedCrop(512))
    assert len(list(loader(dataset, 2, multiprocessing_context="fork"))) == 5


@pytest.fixture
def shared_memory() -> set[str]:
    return {path.name for path in Path("/dev/shm").iterdir()}


def test_nothing_named_is_left_in_shared_memory_while_reading(plain: Path, shared_memory: set[str]) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=4)
    running = iter(loader(dataset, 2, multiprocessing_context="fork"))
    next(running)
    mine = {path.name for path in Path("/dev/shm").iterdir()} - shared_memory
    assert not [name for name in mine if f"_{multiprocessing.current_process().pid}_" in name]
