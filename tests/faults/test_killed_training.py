"""Training under torchrun, killed in the middle of an epoch and resumed on other numbers of ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from shardforge.stream.dataset import ShardDataset
from tests.datasets import make_dataset

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = 150
CHECKPOINT = 4

# Ranks log the keys of every step that they were handed, after the barrier that stands for the step itself. After
# CHECKPOINT steps rank 0 saves the state; the kill comes at some later step, when more was read ahead.
TRAINING = r"""
import json, os, sys, torch.distributed as dist
from pathlib import Path
import shardforge as sf
data, out, stop = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[5]
batch_size, workers = int(sys.argv[3]), int(sys.argv[4])
dist.init_process_group("gloo")
rank, saved = dist.get_rank(), out / "state.json"
loader = sf.ShardLoader(data, "train", batch_size, fields=("key",), tail="mask", workers=workers, threads=2)
if saved.exists():
    loader.load_state_dict(json.loads(saved.read_text()))
with open(out / f"{stop}-{dist.get_world_size()}-{rank}.jsonl", "w") as log:
    for step, batch in enumerate(loader):
        dist.barrier()
        print(json.dumps([key for key in batch["key"] if key]), file=log, flush=True)
        if step + 1 == int(os.environ["CHECKPOINT"]) and stop == "killed" and rank == 0:
            saved.write_text(json.dumps(loader.state_dict()))
        if step + 1 == int(os.environ["CHECKPOINT"]) + 2 and stop == "killed":
            os.write(1, b"ready\n")  # in one piece: ranks share the pipe
            sys.stdin.read()
            dist.barrier()
os.write(1, json.dumps({"epoch": loader.epoch, "left": len(loader)}).encode() + b"\n")
dist.destroy_process_group()
"""


def torchrun(ranks: int, *arguments: object) -> list[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    return [*command, *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CHECKPOINT": str(CHECKPOINT)}


def logged(out: Path, run: str) -> list[list[str]]:
    """Keys per step of every rank, ranks one after the other."""
    return [json.loads(line) for path in sorted(out.glob(f"{run}-*.jsonl")) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_killed_epoch_goes_on_on_three_ranks_and_on_one(tmp_path: Path, workers: int) -> None:
    data, script = tmp_path / "data", tmp_path / "train.py"
    make_dataset(data, {"train": [60, 60, 30]}, format="png", size=(4, 4))
    script.write_text(TRAINING)
    out = tmp_path / "out"
    out.mkdir()
    training = subprocess.Popen(
        torchrun(2, script, data, out, 8, workers, "killed"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert training.stdout is not None
    for _ in range(2):
        assert training.stdout.readline() == "ready\n"
    everyone = [psutil.Process(training.pid), *psutil.Process(training.pid).children(recursive=True)]
    for process in everyone:
        process.kill()
    psutil.wait_procs(everyone)
    training.communicate()
    left = [path.name for path in Path("/dev/shm").iterdir()]
    assert not [name for name in left for process in everyone if f"_{process.pid}_" in name]

    before = [key for rank in range(2) for keys in _steps(out, rank)[:CHECKPOINT] for key in keys]
    assert len(before) == 2 * 8 * CHECKPOINT
    for ranks, batch_size in ((3, 5), (1, 16)):
        done = subprocess.run(
            torchrun(ranks, script, data, out, batch_size, workers, f"resumed{ranks}"),
            capture_output=True,
            text=True,
            timeout=240,
            env=environment(),
        )
        assert done.returncode == 0, done.stderr
        after = [key for keys in logged(out, f"resumed{ranks}") for key in keys]
        assert len(before) + len(after) == SAMPLES
        assert len({*before, *after}) == SAMPLES
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert told == [{"epoch": 1, "left": -(-SAMPLES // (ranks * batch_size))}] * ranks
    order = [sample["key"] for sample in ShardDataset(data, fields=("key",))]
    assert set(before) == set(order[: len(before)])


def _steps(out: Path, rank: int) -> list[list[str]]:
    return [json.loads(line) for line in (out / f"killed-2-{rank}.jsonl").read_text().splitlines()]
