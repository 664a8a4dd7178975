"""Very many shards, samples and epochs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shardforge.shards import layout
from shardforge.shards.manifest import Manifest
from shardforge.stream.order import SampleOrder
from shardforge.stream.share import Share
from tests.datasets import make_dataset

ROOT = Path(__file__).resolve().parents[2]

OPENING = """
import json, sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
from shardforge.stream.loader import ShardLoader
loader = ShardLoader(sys.argv[1], "train", 4, threads=1, tail="mask", fields=("image", "key"))
begun = [path for path in opened if path.startswith(sys.argv[1])]
batches = list(loader)
print(json.dumps([begun, sum(int(batch["valid"].sum()) for batch in batches)]))
"""


@pytest.mark.parametrize("shards", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_opening_very_many_shards_reads_the_manifest_once_and_no_shard(tmp_path: Path, shards: int) -> None:
    manifest = make_dataset(tmp_path, {"train": [9]}, format="png", size=(4, 4))
    train = manifest.splits["train"]
    # All but the first are empty, and not even there: whoever opened one would fail.
    empty = [
        replace(train.shards[0], name=layout.shard_name("train", number), samples=0) for number in range(1, shards)
    ]
    splits = {**manifest.splits, "train": replace(train, shards=(train.shards[0], *empty))}
    replace(manifest, splits=splits).with_fingerprint().write(tmp_path / layout.MANIFEST)
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(tmp_path)], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    opened, samples = json.loads(done.stdout)
    assert opened == [str(tmp_path / layout.MANIFEST)]
    assert samples == 9
    assert len(Manifest.read(tmp_path).splits["train"].shards) == shards


def test_steps_of_a_hundred_million_samples_are_exact() -> None:
    order = SampleOrder("f", 0, 0, [1000] * 100_000, True)
    steps = [Share(len(order), 256, rank, 64, "drop").steps for rank in (0, 63)]
    assert steps == [10**8 // (256 * 64)] * 2
    places = np.concatenate([np.arange(1000), np.arange(10**8 - 1000, 10**8)])
    found = order.at(places)
    assert len(np.unique(found)) == 2000
    assert found.min() >= 0
    assert found.max() < 10**8


GROWING = """
import os, sys
import numpy as np, psutil
from shardforge.stream.loader import ShardLoader
from shardforge.transforms import RandomHorizontalFlip, RandomResizedCrop
loader = ShardLoader(sys.argv[1], "train", 8, threads=2, workers=int(sys.argv[2]), context="fork",
                     transform=[RandomResizedCrop(64), RandomHorizontalFlip()], fields=("image", "label", "key"))
me = psutil.Process()
def memory():
    return sum(process.memory_full_info().uss for process in (me, *me.children(recursive=True)))
used = []
for epoch in range(50):
    for batch in loader:
        pass
    used.append(memory())
print((np.median(used[-5:]) - np.median(used[3:8])) / 2**20)
loader.close()
"""


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.long)])
def test_memory_stays_flat_over_fifty_epochs(rich: Path, workers: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWING, str(rich), str(workers)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    # Measured in MB.
    assert float(done.stdout) < 20
