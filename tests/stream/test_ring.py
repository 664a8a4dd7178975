"""Memory of batches: used again, but never while anybody looks at it."""

from __future__ import annotations

import gc
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from shardforge.stream.loader import ShardLoader
from shardforge.stream.ring import Returns, SharedRing
from shardforge.stream.slots import FreshSlots, RecycledSlots, SharedSlots
from shardforge.transforms import RandomResizedCrop

KINDS = [np.uint8, np.uint16, np.int16, np.float32]


@pytest.mark.parametrize("slots", [FreshSlots(), SharedSlots(), RecycledSlots(), SharedRing()])
@pytest.mark.parametrize("dtype", KINDS)
def test_a_slot_has_the_shape_and_type_asked_for(slots: FreshSlots, dtype: type) -> None:
    slot = slots.take((3, 5, 7, 1), np.dtype(dtype))
    assert slot.shape == (3, 5, 7, 1)
    assert slot.is_contiguous()
    view = slot.numpy()
    assert view.dtype == dtype
    view[:] = 7
    assert (slot.to(torch.int32) == 7).all()
    assert slots.take((0, 4), np.dtype(dtype)).shape == (0, 4)


def test_recycled_memory_comes_back_when_the_last_view_has_gone() -> None:
    slots = RecycledSlots()
    first = slots.take((4, 6), np.dtype(np.uint8))
    place, view = first.data_ptr(), first.permute(1, 0)[2:].numpy()[:, 1]
    del first
    gc.collect()
    assert slots.take((4, 6), np.dtype(np.uint8)).data_ptr() != place
    del view
    gc.collect()
    assert place in {slots.take((4, 6), np.dtype(np.uint8)).data_ptr() for _ in range(2)}
    assert isinstance(pickle.loads(pickle.dumps(slots)), RecycledSlots)  # noqa: S301


def test_a_ring_is_filled_again_only_after_the_trainer_let_go() -> None:
    ring, returns = SharedRing(), Returns(1)
    made = {"image": ring.take((4, 6), np.dtype(np.int16)), "label": torch.zeros(4)}
    place = made["image"].data_ptr()
    assert ring.lent(made) == ["image"]
    received = returns(made, ring.lent(made))
    del made
    received["image"][:] = 3
    view = received["image"][1:2]
    del received
    gc.collect()
    other = ring.take((4, 6), np.dtype(np.int16))
    assert other.data_ptr() != place
    other[:] = 5
    assert (view == 3).all()
    del view
    gc.collect()
    assert ring.take((4, 6), np.dtype(np.int16)).data_ptr() == place


def test_a_ring_that_gets_nothing_back_keeps_giving() -> None:
    ring = SharedRing()
    places = {ring.take((10,), np.dtype(np.uint8)).data_ptr() for _ in range(16)}
    assert len(places) == 16
    assert ring.lent({"image": ring.take((10,), np.dtype(np.uint8))}) == []


def _forget(box: list[Any]) -> None:
    box.clear()
    gc.collect()


def test_what_a_forked_process_lets_go_stays_where_it_was_given(plain: Path) -> None:
    """The flag that frees a batch lies in memory that a forked process shares."""
    crop = RandomResizedCrop(20)
    with ShardLoader(plain, batch_size=4, workers=1, threads=1, transform=crop, context="fork") as loader:
        batches = iter(loader)
        held = [next(batches), next(batches)]
        before = [batch["image"].clone() for batch in held]
        child = multiprocessing.get_context("fork").Process(target=_forget, args=(held,))
        child.start()
        child.join()
        assert child.exitcode == 0
        for _ in batches:
            pass
        assert all(torch.equal(batch["image"], image) for batch, image in zip(held, before, strict=True))


def test_memory_of_other_sizes_makes_room_and_lost_memory_too() -> None:
    ring, returns = SharedRing(), Returns(1)
    for size in range(1000, 1000 + 64 * 40, 64):
        content = returns({"image": ring.take((size,), np.dtype(np.uint8))}, ["image"])
        del content
    lent = ring.take((9,), np.dtype(np.uint8))
    assert ring.lent({"image": lent}) == ["image"]
    for _ in range(40):
        content = returns({"image": ring.take((77,), np.dtype(np.uint8))}, ["image"])
        child = multiprocessing.get_context("fork").Process()
        child.start()
        child.join()
        del content
    assert ring.lent({"image": ring.take((77,), np.dtype(np.uint8))}) == ["image"]


def _hold(batch: dict[str, Any], go: Any, told: Any) -> None:
    before = batch["image"].clone()
    told.put(None)
    go.wait()
    told.put(torch.equal(batch["image"], before))


def test_what_a_forked_process_holds_is_left_alone(plain: Path) -> None:
    context = multiprocessing.get_context("fork")
    crop = RandomResizedCrop(20)
    with ShardLoader(plain, batch_size=4, workers=1, threads=1, transform=crop, context="fork") as loader:
        go, told = context.Event(), context.Queue()
        batches = iter(loader)
        held = next(batches)
        child = context.Process(target=_hold, args=(held, go, told))
        child.start()
        told.get()
        del held
        for _ in batches:
            pass
        for _ in range(3):
            for _ in loader:
                pass
        go.set()
        assert told.get(timeout=60)
        child.join()


def _memory(tensor: torch.Tensor) -> str:
    """The inode of the shared memory that a tensor lies in; no two pieces of it have the same."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        extent, _, _, _, inode, *_ = line.split()
        start, end = (int(part, 16) for part in extent.split("-"))
        if start <= tensor.data_ptr() < end:
            assert inode != "0"
            return inode
    raise AssertionError


@pytest.mark.parametrize("left", [0, 20])
def test_workers_use_their_memory_again_in_the_passes_that_follow(plain: Path, left: int) -> None:
    """``left``: how many passes were left early before, each with batches on their way that never come back."""
    crop = RandomResizedCrop(20)
    with ShardLoader(plain, batch_size=4, workers=1, threads=1, transform=crop, context="fork") as loader:
        held = []
        for _ in range(left):
            batch = next(iter(loader))
            held.append((batch["image"], batch["image"].clone()))
        memory = {_memory(batch["image"]) for _ in range(8) for batch in loader}
        assert len(memory) <= 16 < 8 * 3
        assert all(torch.equal(image, before) for image, before in held)


def _pieces() -> set[str]:
    """The inodes of the shared memory that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[4] for line in lines if "/torch_" in line}


def test_a_batch_that_is_held_keeps_no_other_memory_once_the_loader_is_closed(plain: Path) -> None:
    before = _pieces()
    crop = RandomResizedCrop(20)
    with ShardLoader(plain, batch_size=4, workers=1, threads=1, transform=crop, context="fork") as loader:
        for batch in loader:
            image = batch["image"]
        content = image.clone()
        del batch
        assert len(_pieces() - before) > 1
    del loader
    gc.collect()
    assert _pieces() - before == {_memory(image)}
    assert torch.equal(image, content)
