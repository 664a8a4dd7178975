"""``ShardDataset`` in a DataLoader's worker processes: the same order, shares, crops and epochs for any topology."""

from __future__ import annotations

import itertools
import logging
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil
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


@pytest.mark.parametrize("persistent", [True, False])
def test_what_follows_a_pass_left_early_does_not_depend_on_how_far_workers_read_ahead(
    plain: Path, persistent: bool
) -> None:
    alone = ShardDataset(plain, fields=("key",), batch_size=4)
    expected = [[batch["key"] for batch in alone] for _ in range(2)]
    for workers, ahead in ((1, 1), (1, 20), (3, 1), (3, 20)):
        dataset = ShardDataset(plain, fields=("key",), batch_size=4)
        found = loader(dataset, workers, prefetch_factor=ahead, persistent_workers=persistent)
        assert next(iter(found))["key"] == expected[0][0]
        assert dataset.epoch == 1
        assert [batch["key"] for batch in found] == expected[1]


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


def _training_process(rank: int, dataset: ShardDataset, method: str, told: Any) -> None:
    """What torch.multiprocessing.spawn would run: the dataset arrives before the process group exists."""
    store = torch.distributed.TCPStore("localhost", told["port"], is_master=False)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    found = loader(dataset, 2, multiprocessing_context=method)
    first = [batch["key"] for batch in found]
    # One rank is a whole epoch ahead before the other has begun to look at the second.
    if rank == 0:
        second = [batch["key"] for batch in found]
        torch.distributed.barrier()
    else:
        torch.distributed.barrier()
        second = [batch["key"] for batch in found]
    told["keys"].put((rank, [first, second]))
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("start", "method"),
    [("spawn", "fork"), ("fork", "fork"), pytest.param("spawn", "spawn", marks=pytest.mark.long)],
)
def test_training_processes_that_got_one_dataset_have_their_own_rank_and_epoch(
    plain: Path, start: str, method: str
) -> None:
    dataset = ShardDataset(plain, fields=("key",), batch_size=5)
    assert len(dataset) == 8
    dataset.set_epoch(1)
    context = torch.multiprocessing.get_context(start)
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    told = {"port": store.port, "keys": context.SimpleQueue()}
    processes = [context.Process(target=_training_process, args=(rank, dataset, method, told)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(told["keys"].get() for _ in processes)
    for process in processes:
        process.join()
    for rank in range(2):
        alone = ShardDataset(plain, fields=("key",), batch_size=5, rank=rank, world_size=2)
        alone.set_epoch(1)
        assert found[rank] == [[batch["key"] for batch in alone] for _ in range(2)]


def opencv_threads(image: np.ndarray) -> np.ndarray:
    return np.array([cv2.getNumThreads()])


def test_opencv_keeps_to_one_thread_in_workers_and_is_left_alone_elsewhere(plain: Path) -> None:
    before = cv2.getNumThreads()
    # Its pool of threads exists before the fork.
    cv2.resize(np.zeros((2000, 2000, 3), np.uint8), (3000, 3000))
    found = [
        int(n)
        for workers in (0, 2)
        for batch in loader(ShardDataset(plain, batch_size=8, transform=opencv_threads), workers)
        for n in batch["image"]
    ]
    assert found == [before] * 40 + [1] * 40
    steps = [RandomResizedCrop(1000)]
    large = ShardDataset(plain, batch_size=8, transform=steps)
    assert len(list(loader(large, 2, multiprocessing_context="fork"))) == 5


READING = """
import sys, torch
from shardforge.stream.loader import ShardLoader
loader = ShardLoader(sys.argv[1], batch_size=4, workers=2, context="fork")
batches = iter(loader)
held = [next(batches) for _ in range(3)]
print("reading", flush=True)
sys.stdin.read()
"""


KILLED = """
import sys, torch
from torch.utils.data import DataLoader
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
if __name__ == "__main__":
    _, root, context, kind = sys.argv
    if kind == "loader":
        found = ShardLoader(root, batch_size=4, workers=2, context=context)
    else:
        dataset = ShardDataset(root, batch_size=4)
        next(iter(dataset))
        found = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=context)
    batches = iter(found)
    next(batches), next(batches)
    print("reading", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("context", "kind"),
    [(context, "loader") for context in METHODS] + [("forkserver", "dataset")],
)
def test_no_process_outlives_a_trainer_that_was_killed(plain: Path, tmp_path: Path, context: str, kind: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(KILLED)
    trainer = subprocess.Popen(
        [sys.executable, script, plain, context, kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "reading\n"
    others = psutil.Process(trainer.pid).children(recursive=True)
    assert len(others) >= 2
    trainer.kill()
    _, alive = psutil.wait_procs(others, timeout=20)
    for process in alive:
        process.kill()
    trainer.communicate()
    assert not alive


def test_nothing_is_left_behind_after_a_kill(plain: Path) -> None:
    reader = subprocess.Popen(
        [sys.executable, "-c", READING, str(plain)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    everyone = [psutil.Process(reader.pid), *psutil.Process(reader.pid).children(recursive=True)]
    assert len(everyone) == 3
    # Held by descriptors only, while it is in use: whoever has it mapped has it without a name.
    mapped = [m.path for process in everyone for m in process.memory_maps() if m.path.startswith("/dev/shm")]
    assert mapped
    assert not [path for path in mapped if Path(path).exists()]
    for process in everyone:
        process.kill()
    reader.communicate()
    psutil.wait_procs(everyone)
    left = [path.name for path in Path("/dev/shm").iterdir()]
    assert not [name for name in left for process in everyone if f"_{process.pid}_" in name]
