"""``ShardDataset`` in torchdata's ``StatefulDataLoader``, which is installed into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.datasets import make_dataset

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import itertools, json, sys
from torchdata.stateful_dataloader import StatefulDataLoader
from shardforge.stream.dataset import ShardDataset
from shardforge.errors import UsageError

def main():
    path, workers, batch_size, method = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
    def loader(workers=workers, batch_size=batch_size):
        dataset = ShardDataset(path, fields=("key",), batch_size=batch_size, tail="mask")
        context = method if workers else None
        return dataset, StatefulDataLoader(dataset, batch_size=None if batch_size else 4, num_workers=workers,
                                           multiprocessing_context=context)
    def keys(batches):
        return [key for batch in batches for key in batch["key"] if key]
    _, whole = loader()
    epochs = [keys(whole) for _ in range(4)]
    assert all(sorted(keys) == sorted(epochs[0]) for keys in epochs) and epochs[0] != epochs[1]
    for epoch, steps in ((0, 1), (0, 4), (1, 3), (2, 0)):
        _, one = loader()
        for _ in range(epoch):
            keys(one)
        batches = iter(one)
        before = keys(itertools.islice(batches, steps))
        state = one.state_dict()
        del batches
        dataset, other = loader()
        other.load_state_dict(state)
        after = keys(other)
        assert before + after == epochs[epoch], (epoch, steps, before, after)
        assert keys(other) == epochs[epoch + 1], (epoch, steps)
    # At the end of an epoch, and after it.
    _, one = loader()
    keys(one)
    state = one.state_dict()
    _, other = loader()
    other.load_state_dict(state)
    assert keys(other) == epochs[1]
    if workers:
        _, more = loader(workers=workers + 1)
        try:
            more.load_state_dict(state)
            keys(more)
        except UsageError as error:
            assert "its workers is 2" in str(error)
        else:
            raise SystemExit("another number of workers was accepted")
    print("exact")

if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def torchdata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("torchdata")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
    done = subprocess.run([*install, "torchdata==0.11.0"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"torchdata cannot be installed: {done.stderr.strip()[-200:]}")
    return target


@pytest.mark.parametrize(
    ("workers", "batch_size", "method"),
    [
        ("0", "null", "fork"),
        ("0", "6", "fork"),
        ("2", "null", "fork"),
        pytest.param("2", "6", "spawn", marks=pytest.mark.long),
    ],
)
def test_it_resumes_exactly_with_the_same_number_of_workers(
    torchdata: Path, tmp_path: Path, workers: str, batch_size: str, method: str
) -> None:
    script = tmp_path / "read.py"
    script.write_text(SCRIPT)
    data = tmp_path / "data"
    make_dataset(data, {"train": [16, 0, 7, 17]}, format="png", size=(4, 4))
    done = subprocess.run(
        [sys.executable, str(script), str(data), workers, batch_size, method],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(torchdata)])},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "exact\n"
