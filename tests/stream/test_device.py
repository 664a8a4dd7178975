"""Moving batches to a device, as far as that shows without one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from shardforge.errors import UsageError
from shardforge.stream.device import DeviceFeed
from shardforge.stream.loader import ShardLoader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.mark.parametrize("workers", [0, 1])
def test_tensors_go_to_the_device_and_texts_stay(plain: Path, workers: int) -> None:
    fields = ("image", "label", "key")
    with ShardLoader(plain, "train", 8, fields=fields, device="meta", workers=workers, channels_first=True) as loader:
        batch = next(iter(loader))
    assert batch["image"].device.type == batch["label"].device.type == "meta"
    assert batch["image"].shape == (8, 3, 32, 32)
    assert all(isinstance(key, str) for key in batch["key"])


@pytest.mark.parametrize("device", [None, "cpu", torch.device("cpu")])
def test_on_the_cpu_batches_are_handed_over_as_they_are(device: torch.device | str | None) -> None:
    feed = DeviceFeed(device)
    content = {"image": torch.zeros(2), "key": ["a", "b"]}
    assert not feed.copies
    assert next(feed(iter([content])))["image"] is content["image"]


def test_a_device_that_does_not_exist_is_refused_at_once(plain: Path) -> None:
    for device in ("nowhere", *([] if torch.cuda.is_available() else ["cuda"])):
        with pytest.raises(UsageError, match="device"):
            ShardLoader(plain, "train", 8, device=device)


@pytest.mark.parametrize("workers", [0, 1])
def test_page_locked_memory_is_given_when_asked_or_refused_at_once(plain: Path, workers: int) -> None:
    if not torch.cuda.is_available():
        with pytest.raises(UsageError, match="pin_memory=True, but torch finds no CUDA device"):
            ShardLoader(plain, "train", 8, pin_memory=True, workers=workers)
        return
    with ShardLoader(plain, "train", 8, pin_memory=True, workers=workers) as loader:
        assert next(iter(loader))["image"].is_pinned()
