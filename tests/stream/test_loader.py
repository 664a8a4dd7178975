"""``ShardLoader``: whole batches."""

from __future__ import annotations

import contextlib
import gc
import inspect
import io
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import psutil
import pytest
import torch
import torch.utils.data.dataloader

from shardforge.errors import DamagedError, ShardforgeError, UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop
from tests.datasets import class_label, make_dataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def keys(loader: ShardLoader) -> list[str]:
    return [key for batch in loader for key in batch["key"]]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_ready_for_the_device(plain: Path, workers: int) -> None:
    steps = [RandomResizedCrop(24), RandomHorizontalFlip()]
    with ShardLoader(plain, "train", 8, transform=steps, workers=workers, fields=("image", "label", "key")) as loader:
        assert len(loader) == 5
        found = list(loader)
    assert len(found) == 5
    for batch in found:
        assert batch["image"].shape == (8, 24, 24, 3)
        assert batch["image"].dtype == torch.uint8
        assert batch["image"].is_contiguous()
        assert batch["label"].tolist() == [class_label(int(key)) for key in batch["key"]]


def test_channels_may_come_first(plain: Path) -> None:
    last = next(iter(ShardLoader(plain, batch_size=8)))["image"]
    first = next(iter(ShardLoader(plain, batch_size=8, channels_first=True)))["image"]
    assert first.shape == (8, 3, 32, 32)
    assert first.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(first.permute(0, 2, 3, 1), last)
    image, label = next(iter(ShardLoader(plain, batch_size=8, channels_first=True, as_tuple=True)))
    assert torch.equal(image, first)
    assert label.shape == (8,)


@pytest.mark.parametrize("workers", [0, 2])
def test_passes_read_successive_epochs_unless_told(plain: Path, workers: int) -> None:
    alone = ShardDataset(plain, fields=("key",), batch_size=7)
    expected = [[key for batch in alone for key in batch["key"]] for _ in range(4)]
    with ShardLoader(plain, "train", 7, fields=("key",), workers=workers) as loader:
        assert [keys(loader), keys(loader)] == expected[:2]
        loader.set_epoch(0)
        assert loader.epoch == 0
        assert [keys(loader), keys(loader)] == expected[:2]
        loader.set_epoch(3)
        assert keys(loader) == expected[3]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_left_early_is_read_again_from_its_start(plain: Path, workers: int) -> None:
    with ShardLoader(plain, "train", 7, fields=("key",), workers=workers) as loader:
        first = next(iter(loader))["key"]
        # All but the last batch: with workers, everything was read ahead by now, but not handed over.
        for _, batch in zip(range(4), loader, strict=False):
            last = batch["key"]
        assert keys(loader)[:7] == first
        assert last != first
        assert loader.epoch == 1


def test_an_epoch_set_while_reading_counts_for_the_next_pass(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 7, fields=("key",))
    for _ in loader:
        loader.set_epoch(0)
    assert loader.epoch == 0


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("in_the_middle", [True, False])
def test_closing_ends_the_workers(plain: Path, in_the_middle: bool) -> None:
    before = children()
    loader = ShardLoader(plain, "train", 4, workers=2, context="fork")
    if in_the_middle:
        next(iter(loader))
    else:
        list(loader)
    assert len(children() - before) == 2
    loader.close()
    gc.collect()
    assert children() == before
    assert len(list(loader)) == len(loader)
    loader.close()


def test_workers_live_on_between_passes(plain: Path) -> None:
    before = children()
    with ShardLoader(plain, "train", 4, workers=2, context="fork") as loader:
        list(loader)
        first = children() - before
        list(loader)
        assert children() - before == first


def test_a_loader_in_use_pickles(plain: Path) -> None:
    with ShardLoader(plain, "train", 4, workers=1, fields=("key",)) as loader:
        list(loader)
        next(iter(loader))
        copy = pickle.loads(pickle.dumps(loader))  # noqa: S301
        assert copy.epoch == 1
        with copy:
            assert keys(copy) == keys(loader)


def test_options_are_those_of_the_dataset() -> None:
    of_dataset = inspect.signature(ShardDataset).parameters
    of_loader = inspect.signature(ShardLoader).parameters
    for name, parameter in of_dataset.items():
        assert name in of_loader
        if name != "batch_size":
            assert of_loader[name].default == parameter.default
    assert not any(parameter.kind is parameter.VAR_KEYWORD for parameter in of_loader.values())


@pytest.mark.parametrize("workers", [0, 2])
def test_a_damaged_sample_is_named_without_a_workers_traceback(tmp_path: Path, workers: int) -> None:
    make_dataset(tmp_path, {"train": [4, 4, 4]}, format="png")
    (tmp_path / "train-000001.tar").write_bytes(b"")
    with ShardLoader(tmp_path, batch_size=2, workers=workers) as loader:
        with pytest.raises(DamagedError, match=r"train-000001\.tar, sample 00000000") as caught:
            list(loader)
        assert "Traceback" not in str(caught.value)
        assert caught.value.todo is not None
        assert loader.epoch == 0


def test_senseless_arguments_are_refused(plain: Path) -> None:
    with pytest.raises(UsageError, match="workers"):
        ShardLoader(plain, workers=-1)
    with pytest.raises(UsageError, match="fewer than one global batch"):
        ShardLoader(plain, batch_size=64)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_pass_that_another_one_displaced_does_not_end_as_if_complete(plain: Path, workers: int) -> None:
    with ShardLoader(plain, "train", 4, fields=("key",), workers=workers) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(UsageError, match="another one over this loader has begun"):
            next(first)
        assert len(list(second)) == len(loader)
        with pytest.raises(StopIteration):
            next(second)
        with pytest.raises(UsageError, match="another one"):
            list(zip(loader, loader, strict=True))
        third = iter(loader)
        next(third)
        loader.close()
        with pytest.raises(UsageError, match="closed"):
            next(third)
        fourth = iter(loader)
        loader.load_state_dict(loader.state_dict())
        with pytest.raises(UsageError, match="a state was loaded"):
            next(fourth)


def test_a_complete_pass_stays_so_when_the_next_has_begun(plain: Path) -> None:
    loader = ShardLoader(plain, "train", 4, fields=("key",))
    first = iter(loader)
    for _ in range(len(loader)):
        next(first)
    iter(loader)
    with pytest.raises(StopIteration):
        next(first)


def broken(image: object) -> object:
    raise ValueError("broken")


@pytest.mark.parametrize("workers", [0, 2])
def test_closing_ends_the_workers_whoever_keeps_the_traceback(plain: Path, workers: int) -> None:
    before = children()
    kept: ValueError | None = None
    try:
        with ShardLoader(plain, "train", 4, workers=workers, context="fork", transform=broken) as loader:
            batches = iter(loader)
            next(batches)
    except ValueError as error:
        kept = error
    assert kept is not None
    assert children() == before
    with pytest.raises(UsageError, match="ended by an error"):
        next(batches)


def test_a_killed_worker_is_explained_and_the_loader_can_be_iterated_again(plain: Path) -> None:
    before = children()
    with ShardLoader(plain, "train", 4, workers=1, context="fork") as loader:
        batches = iter(loader)
        next(batches)
        (worker,) = children() - before
        psutil.Process(worker).kill()
        with pytest.raises(ShardforgeError, match=r"a worker process died \(pid \d+: signal 9\)\. .* memory ran out"):
            list(batches)
        assert len(list(loader)) == len(loader)
    assert children() == before


class Interruption(BaseException):
    """Like Ctrl-C."""


@pytest.mark.parametrize("call", range(1, 100, 6))
def test_a_pass_cut_anywhere_in_the_dataloader_leaves_no_trace(plain: Path, call: int) -> None:
    """``call``: of the functions of DataLoader, the one that is interrupted."""
    expected = [batch["key"] for batch in ShardDataset(plain, fields=("key",), batch_size=4)]
    calls = 0

    def interrupt(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename == torch.utils.data.dataloader.__file__:
            calls += 1
            if calls == call:
                sys.setprofile(None)
                raise Interruption

    with ShardLoader(plain, "train", 4, fields=("key",), workers=2, threads=1, context="fork") as loader:
        assert [batch["key"] for batch in loader] == expected
        loader.set_epoch(0)
        sys.setprofile(interrupt)
        try:
            with pytest.raises(Interruption):
                [list(loader) for _ in range(20)]
        finally:
            sys.setprofile(None)
        loader.set_epoch(0)
        assert [batch["key"] for batch in loader] == expected


def test_a_shard_truncated_under_a_worker_is_named_and_can_be_put_back(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [40]}, format="npy")
    shard = tmp_path / "train-000000.tar"
    content = shard.read_bytes()
    with ShardLoader(tmp_path, batch_size=2, workers=1, threads=1, prefetch=1, context="fork") as loader:
        batches = iter(loader)
        next(batches)
        os.truncate(shard, 0)
        with pytest.raises(ShardforgeError, match=r"pid \d+: signal 7\): the shard became shorter") as caught:
            list(batches)
        assert caught.value.where == str(shard)
        assert f"`shardforge inspect {tmp_path} --verify`" in str(caught.value)
        assert "memory" not in str(caught.value)
        with pytest.raises(DamagedError, match=f"0 bytes long, not {len(content)}"):
            list(loader)
        (tmp_path / "new.tar").write_bytes(content)
        (tmp_path / "new.tar").rename(shard)
        assert len(list(loader)) == 20


def test_a_bus_error_with_all_shards_in_order_may_be_shared_memory(plain: Path) -> None:
    before = children()
    with ShardLoader(plain, "train", 4, workers=1, context="fork") as loader:
        batches = iter(loader)
        next(batches)
        (worker,) = children() - before
        os.kill(worker, signal.SIGBUS)
        with pytest.raises(ShardforgeError, match=r"signal 7\)\. .* or that shared memory \(/dev/shm\) is full"):
            list(batches)


def test_a_worker_killed_between_passes_is_replaced(plain: Path) -> None:
    before = children()
    with ShardLoader(plain, "train", 4, workers=1, context="fork") as loader:
        list(loader)
        (worker,) = children() - before
        with contextlib.suppress(RuntimeError):
            psutil.Process(worker).kill()
            psutil.wait_procs([psutil.Process(worker)])
        assert len(list(loader)) == len(loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_loader_in_use_can_be_iterated_by_a_forked_process(plain: Path, workers: int) -> None:
    context = multiprocessing.get_context("fork")
    with ShardLoader(plain, "train", 4, fields=("key",), workers=workers, context="fork", threads=2) as loader:
        running = iter(loader)
        given = [next(running)["key"]]
        expected = [batch["key"] for batch in ShardDataset(plain, fields=("key",), batch_size=4)]
        told = context.SimpleQueue()

        def iterate() -> None:
            with pytest.raises(UsageError, match="another process"):
                next(running)
            told.put([batch["key"] for batch in loader])
            loader.close()

        process = context.Process(target=iterate)
        process.start()
        process.join(60)
        process.kill()
        process.join()
        assert process.exitcode == 0
        assert told.get() == expected
        assert given + [batch["key"] for batch in running] == expected


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("workers", 1.5),
        ("threads", 1.5),
        ("threads", 0),
        ("prefetch", 2.5),
        ("prefetch", 0),
        ("batch_size", None),
        ("batch_size", True),
        ("shuffle", "yes"),
        ("context", "x"),
        ("seed", 0.5),
    ],
)
def test_what_counts_nothing_is_refused_at_once(plain: Path, argument: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"{argument}="):
        ShardLoader(plain, **{"batch_size": 4, argument: value})


@pytest.mark.parametrize("make", [ShardLoader, ShardDataset])
@pytest.mark.parametrize("epoch", ["1", 1.7, None, -1])
def test_an_epoch_is_a_whole_number(plain: Path, make: Any, epoch: Any) -> None:
    reader = make(plain, batch_size=4)
    with pytest.raises(UsageError, match="epoch="):
        reader.set_epoch(epoch)
    if epoch is not None:
        with pytest.raises(UsageError, match="epoch="):
            reader.plan(epoch)
    with pytest.raises(UsageError, match="of type NoneType"):
        reader.load_state_dict(None)
    assert reader.epoch == 0


@pytest.mark.parametrize("make", [ShardLoader, ShardDataset])
def test_states_of_numpys_and_torchs_integers_are_plain(plain: Path, make: Any) -> None:
    options = {"batch_size": np.int64(4), "seed": np.int32(3), "shuffle": np.int64(16)}
    options |= {"rank": np.int64(1), "world_size": torch.tensor(2), "fields": ("key",)}
    reader = make(plain, **options)
    reader.set_epoch(np.int64(3))
    next(iter(reader))
    state = reader.state_dict() if make is ShardLoader else reader.state_dict(consumed=np.int64(1), epoch=np.int64(3))
    assert {type(value) for value in state.values()} == {int, str}
    assert (state["epoch"], state["position"]) == (3, 8)
    saved = io.BytesIO()
    torch.save(state, saved)
    saved.seek(0)
    again = make(plain, **options)
    again.load_state_dict(torch.load(saved, weights_only=True))
    again.load_state_dict(json.loads(json.dumps(state)))
    assert again.epoch == 3
    again.load_state_dict({**state, "epoch": np.int64(3)})
    with pytest.raises(UsageError, match=r"consumed=1\.5"):
        ShardDataset(plain).state_dict(consumed=1.5)  # type: ignore[arg-type]


def broken_at_last(sample: dict[str, Any]) -> Any:
    return None if sample["key"] == "000000039" else sample


def broken_there(sample: dict[str, Any]) -> Any:
    if sample["key"] == "000000039":
        raise KeyError("broken")
    return sample


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("transform", "kind"), [(broken_at_last, UsageError), (broken_there, KeyError)])
def test_a_failing_transform_keeps_its_type_and_the_sample_is_named(
    plain: Path, workers: int, transform: Any, kind: type[Exception]
) -> None:
    stored = [sample["key"] for sample in ShardDataset(plain, fields=("key",), shuffle=False)]
    named = f"sample 000000039, place {stored.index('000000039')} of epoch 0"
    options: dict[str, Any] = {"fields": ("key",), "shuffle": False, "transform_sample": transform}
    with ShardLoader(plain, "train", 4, workers=workers, **options) as loader, pytest.raises(kind) as caught:
        list(loader)
    told = str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert named in told
    with pytest.raises(kind) as alone:
        list(ShardDataset(plain, **options))
    assert alone.value.__notes__ == [named]


FORGOTTEN = """
import gc, sys
from shardforge import ShardLoader
first = ShardLoader(sys.argv[1], batch_size=4, workers=2, context="fork")
running = iter(first)
next(running)
# Collected in the workers of the second one, where it is nobody's.
circle = [first, running]
circle.append(circle)
del first, running, circle
def transform(image):
    gc.collect()
    return image
second = ShardLoader(sys.argv[1], batch_size=4, workers=2, context="fork", transform=transform)
print(sum(1 for _ in second))
second.close()
"""


def test_workers_of_a_second_loader_leave_those_of_a_forgotten_one_alone(plain: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORGOTTEN, str(plain)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(ShardLoader(plain, batch_size=4))}\n")
    assert "can only test a child process" not in done.stderr
