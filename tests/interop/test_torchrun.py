"""``recipes/train_ddp.py`` under the real torchrun: two gloo ranks on real scans of handwritten digits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from sklearn.datasets import load_digits

from shardforge.shards import layout, metadata
from shardforge.stream.dataset import ShardDataset
from tests.datasets import make_dataset

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 × 8 grey PNGs: 1 597 for training in four shards, 200 for validation."""
    root, scans = tmp_path_factory.mktemp("digits"), load_digits()
    order = np.random.default_rng(0).permutation(len(scans.target))
    images = (scans.images * 255 / 16).round().astype(np.uint8)[order][..., None]
    make_dataset(
        root,
        {"train": [400, 400, 400, 397], "val": [200]},
        format="png",
        channels=1,
        pixels=lambda number: images[number],
        label=lambda number: int(scans.target[order][number]),
        classes={str(digit): digit for digit in range(10)},
    )
    return root


def torchrun(*arguments: object, ranks: int = 2) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    command += [str(ROOT / "recipes" / "train_ddp.py"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)


def zero_payload(root: Path, number: int) -> None:
    """Overwrites the picture of training item ``number``."""
    for path in sorted(root.glob("train-*.parquet")):
        rows = metadata.read(path).filter(pc.field("key") == f"{number:09d}")
        if rows.num_rows:
            with open(layout.tar_path(root, path.stem), "r+b") as tar:
                tar.seek(rows["png_offset"][0].as_py())
                tar.write(bytes(rows["png_size"][0].as_py()))


@pytest.mark.parametrize(("ranks", "workers"), [(2, 1), pytest.param(3, 0, marks=pytest.mark.long)])
def test_ranks_train_digits_on_every_sample_exactly_once(
    digits: Path, tmp_path: Path, ranks: int, workers: int
) -> None:
    log = tmp_path / "log.jsonl"
    done = torchrun(
        *("--data", digits, "--epochs", 8, "--batch-size", 128 // ranks, "--workers", workers),
        *("--target-accuracy", 0.95, "--log-file", log),
        ranks=ranks,
    )
    assert done.returncode == 0, done.stderr
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(epochs) == 8
    steps = -(-1597 // (ranks * (128 // ranks)))
    for epoch in epochs:
        assert epoch["steps"] == [steps] * ranks
        assert epoch["given"] == epoch["different"] == epoch["samples"] == 1597
        assert epoch["validated"] == 200
    assert epochs[-1]["accuracy"] >= 0.95
    assert done.stdout.count("every sample exactly once") == 8
    assert "NOT" not in done.stdout


def test_a_missed_target_is_exit_code_1(digits: Path) -> None:
    done = torchrun("--data", digits, "--epochs", 1, "--lr", 1e-9, "--target-accuracy", 0.95)
    assert done.returncode == 1
    assert "below the target" in done.stdout


def test_a_missing_dataset_is_said_once_and_ends_every_rank(tmp_path: Path) -> None:
    done = torchrun("--data", tmp_path / "nowhere")
    assert done.returncode != 0
    assert done.stderr.count("no dataset.json here") == 1
    assert "rank 0, 1" in done.stderr
    # What torchrun says about its children is its own; the script itself gives no traceback.
    assert 'train_ddp.py", line' not in done.stderr


def test_a_rank_that_cannot_read_ends_the_others_before_the_first_step(digits: Path, tmp_path: Path) -> None:
    """Only one of two ranks meets the damage in its first batch; the other must not wait for it forever."""
    broken = tmp_path / "broken"
    make_dataset(broken, {"train": [4, 4], "val": [4]}, format="png")
    # With one sample per rank and step, exactly one rank finds the sample of place 0.
    first = next(iter(ShardDataset(broken, fields=("key",), batch_size=1, rank=0, world_size=2)))["key"][0]
    zero_payload(broken, int(first))
    done = torchrun("--data", broken, "--batch-size", 1)
    assert done.returncode != 0
    assert f"rank 0: {broken}" in done.stderr
    assert f"sample {first}, field png" in done.stderr
    assert 'train_ddp.py", line' not in done.stderr
    assert "epoch 0" not in done.stdout


@pytest.mark.long
def test_damage_met_in_the_middle_of_an_epoch_ends_every_rank(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [16, 16], "val": [4]}, format="png")
    last = list(ShardDataset(tmp_path, fields=("key",)))[-1]["key"]
    zero_payload(tmp_path, int(last))
    done = torchrun("--data", tmp_path, "--batch-size", 2, "--workers", 1)
    assert done.returncode != 0
    assert f"rank 1: {tmp_path}" in done.stderr
    assert f"sample {last}, field png" in done.stderr
    assert 'train_ddp.py", line' not in done.stderr


@pytest.mark.long
def test_one_process_without_torchrun_trains_too(digits: Path) -> None:
    command = [sys.executable, str(ROOT / "recipes" / "train_ddp.py"), "--data", str(digits), "--epochs", "1"]
    environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert "1597 samples given, 1597 different of 1597: every sample exactly once" in done.stdout


@pytest.mark.long
def test_two_ranks_learn_what_one_would_with_the_same_global_batches(tmp_path: Path) -> None:
    """The order does not depend on the world size, so neither may the gradients.

    Every second step has one valid row among sixteen: all of it on one rank, none on the other.
    """
    make_dataset(tmp_path / "data", {"train": [17], "val": [4]}, format="png", size=(8, 8))
    losses = []
    for ranks in (1, 2):
        log = tmp_path / f"{ranks}.jsonl"
        size = 16 // ranks
        done = torchrun(
            "--data", tmp_path / "data", "--epochs", 6, "--batch-size", size, "--log-file", log, ranks=ranks
        )
        assert done.returncode == 0, done.stderr
        losses.append([json.loads(line)["loss"] for line in log.read_text().splitlines()])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)
