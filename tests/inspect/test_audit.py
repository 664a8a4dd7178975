"""``audit``: a log of keys proves exactly-once, or names what is missing, repeated, foreign or unequal."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardforge.errors import StorageError, UsageError
from shardforge.inspect.audit import audit
from shardforge.stream.dataset import ShardDataset
from tests.datasets import make_dataset
from tests.pictures import run

Entry = dict[str, Any]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train: keys 000000000 … 000000029."""
    root = tmp_path_factory.mktemp("data")
    make_dataset(root, {"train": [16, 14], "val": [3]}, format="png", size=(8, 8))
    return root


def trained(data: Path, *, world: int = 2, tail: Any = "mask", epochs: int = 2, batch: int = 4) -> list[Entry]:
    """What the documented lines of a training loop write, over all ranks."""
    log = []
    for rank in range(world):
        loader = ShardDataset(data, fields=("key",), batch_size=batch, rank=rank, world_size=world, tail=tail)
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for step, content in enumerate(loader):
                log += [{"epoch": epoch, "rank": rank, "step": step, "key": key} for key in content["key"]]
    return log


def write(path: Path, log: list[Entry]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(log), path)
    elif path.suffix == ".csv":
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, list(log[0]))
            writer.writeheader()
            writer.writerows(log)
    else:
        path.write_text("".join(json.dumps(entry) + "\n" for entry in log))
    return path


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_real_epochs_are_proved_in_every_form_of_log(data: Path, tmp_path: Path, form: str, world: int) -> None:
    found = audit(data, [write(tmp_path / f"keys.{form}", trained(data, world=world))])
    assert found.sound
    assert [(e.epoch, e.given, e.missing.count, e.repeated.count) for e in found.epochs] == [
        (0, 30, 0, 0),
        (1, 30, 0, 0),
    ]
    # 30 samples, 4 rows a step and rank, the last step masked.
    steps = -(-30 // (4 * world))
    assert all(epoch.steps == dict.fromkeys(range(world), steps) for epoch in found.epochs)
    assert all(epoch.empty == steps * 4 * world - 30 for epoch in found.epochs)


def test_logs_of_several_ranks_are_taken_together(data: Path, tmp_path: Path) -> None:
    log = trained(data)
    paths = [write(tmp_path / f"{r}.jsonl", [entry for entry in log if entry["rank"] == r]) for r in range(2)]
    assert audit(data, paths).sound
    assert not audit(data, paths[:1]).sound


def test_an_empty_log_is_no_keys_and_a_cut_last_line_is_left_out_and_told(data: Path, tmp_path: Path) -> None:
    log = trained(data, epochs=1)
    whole = write(tmp_path / "0.jsonl", log)
    empty, cut = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    empty.write_bytes(b"")
    cut.write_bytes(b'{"epoch": 0, "rank": 0, "st')
    found = audit(data, [whole, empty, cut])
    assert found.sound
    assert found.notes == (f"{empty}: is empty, which counts as no keys", f"{cut}: 1 cut line left out")
    assert f"note: {found.notes[1]}" in found.lines()
    # The cut line's own sample is missing, and nothing else.
    lost = next(entry["key"] for entry in reversed(log) if entry["key"])
    content = write(whole, [entry for entry in log if entry["key"]]).read_bytes()
    whole.write_bytes(content[:-4])
    found = audit(data, [whole])
    assert found.epochs[0].missing.examples == (lost,)
    assert (found.epochs[0].foreign.count, found.notes) == (0, (f"{whole}: 1 cut line left out",))


def test_a_run_that_appends_to_a_cut_line_loses_that_line_only(data: Path, tmp_path: Path) -> None:
    log = [entry for entry in trained(data, epochs=1) if entry["key"]]
    before = write(tmp_path / "a.jsonl", log[:10]).read_bytes()
    rest = write(tmp_path / "b.jsonl", log[9:]).read_bytes()
    whole = tmp_path / "keys.jsonl"
    whole.write_bytes(before[:-9] + rest)
    found = audit(data, [whole])
    assert found.sound
    assert found.notes == (f"{whole}: 1 cut line left out",)


def test_a_csv_that_was_cut_loses_its_last_line_only(data: Path, tmp_path: Path) -> None:
    log = [entry for entry in trained(data, epochs=1) if entry["key"]]
    path = write(tmp_path / "keys.csv", log)
    content = path.read_bytes().rstrip()
    path.write_bytes(content)
    assert audit(data, [path]).sound
    path.write_bytes(content + b"\n0,0")
    found = audit(data, [path])
    assert found.sound
    assert found.notes == (f"{path}: 1 cut line left out",)


def test_a_line_that_is_no_cut_one_is_still_refused(data: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "keys.jsonl", trained(data, epochs=1))
    path.write_bytes(b"no json\n" + path.read_bytes())
    with pytest.raises(UsageError, match="cannot be read as jsonl"):
        audit(data, [path])


def test_a_dropped_tail_is_exactly_as_large_as_said(data: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "keys.jsonl", trained(data, tail="drop"))
    dropped = ShardDataset(data, batch_size=4, rank=0, world_size=2, tail="drop").dropped
    assert dropped == 6
    assert audit(data, [path], dropped=dropped).sound
    assert not audit(data, [path]).sound
    assert not audit(data, [path], dropped=7).sound


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda log: log.remove(next(e for e in log if e["key"] == "000000007")), "1 samples missing: 000000007"),
        (lambda log: log.append({**log[0], "key": "000000003"}), "1 samples given 1 times too often: 000000003"),
        (lambda log: log.append({**log[0], "key": "0\x1b[31m"}), r"1 keys that are none of this split: 0\x1b[31m"),
        (lambda log: log.append({"epoch": 0, "rank": 1, "step": 99, "key": ""}), "unequal steps: rank 0 4, rank 1 5"),
        (lambda log: log.append({**log[0], "key": "000000031"}), "none of this split: 000000031"),
    ],
    ids=["missing", "repeated", "foreign", "steps", "other split"],
)
def test_what_is_wrong_is_named(data: Path, tmp_path: Path, change: Callable[[list[Entry]], Any], told: str) -> None:
    log = trained(data, epochs=1)
    change(log)
    found = audit(data, [write(tmp_path / "keys.parquet", log)])
    assert not found.sound
    assert any(told in line for line in found.lines())
    assert found.lines()[-1].startswith("NOT EXACTLY ONCE: 0 of 1 epochs")


def test_only_the_epoch_that_is_wrong_is_blamed(data: Path, tmp_path: Path) -> None:
    log = trained(data)
    log.remove(next(entry for entry in log if entry["epoch"] == 1 and entry["key"]))
    found = audit(data, [write(tmp_path / "keys.csv", log)])
    assert [epoch.sound for epoch in found.epochs] == [True, False]


def test_rank_and_step_are_not_needed(data: Path, tmp_path: Path) -> None:
    log = [{"epoch": entry["epoch"], "key": entry["key"]} for entry in trained(data)]
    assert audit(data, [write(tmp_path / "keys.jsonl", log)]).sound


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.txt", "x", "is no log"),
        ("a.jsonl", '{"epoch": 0}\n', None),
        ("a.csv", "epoch,id\n0,a\n", "has no column 'key'"),
        ("a.csv", "key\na\n", "has no column 'epoch'"),
        ("a.csv", "epoch,key\nfirst,a\n", "its column 'epoch' is string, not int64"),
        ("a.csv", "epoch,key\n", "no rows"),
        ("a.parquet", "no parquet", "cannot be read as parquet"),
    ],
)
def test_unusable_logs_are_refused(data: Path, tmp_path: Path, name: str, content: str, told: str | None) -> None:
    (tmp_path / name).write_text(content)
    if told is None:  # JSON lines without a key: every row is one without a sample
        assert not audit(data, [tmp_path / name]).sound
        return
    with pytest.raises(UsageError, match=told):
        audit(data, [tmp_path / name])


def test_what_does_not_exist_is_named(data: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"absent\.csv: cannot be read"):
        audit(data, [tmp_path / "absent.csv"])
    with pytest.raises(UsageError, match="no split 'test'"):
        audit(data, [write(tmp_path / "a.csv", [{"epoch": 0, "key": ""}])], split="test")


def test_the_command_says_so_by_its_exit_code(data: Path, tmp_path: Path) -> None:
    log = trained(data)
    good, bad = write(tmp_path / "good.parquet", log), write(tmp_path / "bad.parquet", log[1:])
    done = run("audit", data, "--log", good)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "2 of 2 epochs gave each of the 30 samples exactly once"
    done = run("audit", data, "--log", bad, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["epochs"][0]["missing"]["count"] == 1
    assert run("audit", data, "--log", tmp_path / "absent.csv").returncode == 3
    assert run("audit", data).returncode == 2
