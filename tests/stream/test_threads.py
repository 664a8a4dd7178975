"""Batches made in threads: in order, with errors in their place, and nothing left behind."""

from __future__ import annotations

import gc
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from shardforge.errors import DamagedError, UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.stream.slots import FreshSlots
from shardforge.stream.threads import choose_threads
from shardforge.transforms import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, Resize
from tests.datasets import make_dataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.fixture
def earlier() -> set[threading.Thread]:
    """Threads from before the test: those of other tests' loaders that nobody closed end when they are collected."""
    return set(threading.enumerate())


def ours(earlier: set[threading.Thread]) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith("shardforge")} - earlier


STEPS = [
    [],
    [RandomResizedCrop(20), RandomHorizontalFlip()],
    [Resize(24), CenterCrop(20)],
    [RandomHorizontalFlip(), RandomResizedCrop(20), RandomResizedCrop(20)],
    [RandomResizedCrop(20), lambda image: image[::-1]],
]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_give_what_single_samples_give(rich: Path, steps: list, threads: int) -> None:
    fields = ("image", "label", "key", "mask", "txt", "age")
    alone = ShardDataset(rich, fields=fields, transform=steps, tail="mask")
    expected = list(alone)
    loader = ShardLoader(rich, "train", 6, fields=fields, transform=steps, tail="mask", threads=threads)
    rows = [
        {name: values[row] for name, values in batch.items()}
        for batch in loader
        for row in range(6)
        if batch["valid"][row]
    ]
    assert len(rows) == len(expected) == 16
    for row, sample in zip(rows, expected, strict=True):
        assert set(row) == set(sample)
        for name, value in row.items():
            same = torch.equal(value, sample[name]) if isinstance(value, torch.Tensor) else value == sample[name]
            assert same, name
    loader.close()


def test_an_error_comes_in_the_place_of_its_batch(tmp_path: Path, earlier: set[threading.Thread]) -> None:
    make_dataset(tmp_path, {"train": [8, 8, 8]}, format="png")
    (tmp_path / "train-000001.tar").write_bytes(b"")
    loader = ShardLoader(tmp_path, batch_size=4, threads=3, prefetch=5, shuffle=False)
    batches = iter(loader)
    assert len([next(batches), next(batches)]) == 2
    with pytest.raises(
        DamagedError, match=r"train-000001\.tar, sample 00000000[89]|train-000001\.tar, sample 00000001"
    ):
        next(batches)
    assert loader.state_dict()["position"] == 8
    loader.close()
    assert not ours(earlier)


def noise(image: np.ndarray) -> np.ndarray:
    return np.array([random.random(), np.random.random(), torch.rand(()).item()])


def test_draws_from_global_generators_are_the_same_for_any_number_of_workers(plain: Path) -> None:
    found = []
    for workers in (1, 3):
        with ShardLoader(plain, "train", 4, workers=workers, transform=noise) as loader:
            assert loader.threads == 1
            found.append(torch.cat([batch["image"] for batch in loader]))
    assert torch.equal(found[0], found[1])
    assert len(torch.unique(found[0])) == 120


def test_batches_stay_as_they_were_handed_over(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 4, threads=2, prefetch=3, transform=[RandomResizedCrop(16)])
    held, copies = [], []
    for _ in range(5):
        for batch in loader:
            held.append(batch["image"][1:3].numpy())
            copies.append(held[-1].copy())
    assert all(np.array_equal(one, other) for one, other in zip(held, copies, strict=True))
    loader.close()


def test_memory_is_used_again_when_a_batch_is_let_go(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 4, threads=2, prefetch=1)
    places = {batch["image"].data_ptr() for _ in range(5) for batch in loader}
    assert len(places) <= 6
    loader.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_closing_leaves_no_thread_process_descriptor_or_memory(
    plain: Path, workers: int, earlier: set[threading.Thread]
) -> None:
    process = psutil.Process()
    for _ in range(2):
        before = process.num_fds(), len(process.children(recursive=True)), set(Path("/dev/shm").iterdir())
        for in_the_middle in (True, False):
            loader = ShardLoader(plain, "train", 4, threads=2, workers=workers, context="fork" if workers else None)
            batches = iter(loader)
            next(batches)
            if not in_the_middle:
                list(batches)
            del batches
            loader.close()
            del loader
            gc.collect()
        assert not ours(earlier)
        after = process.num_fds(), len(process.children(recursive=True)), set(Path("/dev/shm").iterdir())
    assert after == before


def test_a_forgotten_loader_takes_its_threads_along(plain: Path, earlier: set[threading.Thread]) -> None:
    loader = ShardLoader(plain, "train", 4, threads=2)
    next(iter(loader))
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("shardforge")]
    assert threads
    del loader
    gc.collect()
    for thread in threads:
        thread.join(10)
    assert not ours(earlier)


def test_threads_are_chosen_by_the_processors_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    assert [choose_threads(None, workers) for workers in (0, 1, 2, 20)] == [12, 12, 6, 1]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert [choose_threads(None, 0), choose_threads(None, 2), choose_threads(7, 2)] == [3, 1, 7]
    with pytest.raises(UsageError, match="threads"):
        choose_threads(0, 0)


def test_stopping_waits_for_the_rows_that_have_begun_and_for_no_others(plain: Path) -> None:
    begun, go, rows = threading.Event(), threading.Event(), []

    def slow(image: np.ndarray) -> np.ndarray:
        rows.append(1)
        begun.set()
        go.wait()
        return image

    dataset = ShardDataset(plain, batch_size=32, transform=slow)
    (job,) = dataset.source.jobs(0, dataset.share(0), range(1), FreshSlots())
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(job.work, 5)
        begun.wait()
        job.stop()
        go.set()
        work.result()
    assert len(rows) == 5
    with pytest.raises(RuntimeError, match="before it was made"):
        _ = job.content


def test_threads_share_the_rows_of_a_batch(plain: Path) -> None:
    """The second row waits until another thread has begun the third: one thread alone would never end."""
    met = threading.Barrier(2, timeout=60)
    names: set[str] = set()

    def meet(image: np.ndarray) -> np.ndarray:
        if len(names) < 2:
            names.add(threading.current_thread().name)
            met.wait()
        return image

    with ShardLoader(plain, batch_size=32, threads=2, prefetch=1, transform=meet) as loader:
        assert next(iter(loader))["image"].shape[0] == 32
    assert len(names) == 2
