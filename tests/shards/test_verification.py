"""What people read about a verification."""

from __future__ import annotations

import json
from pathlib import Path

from shardforge.shards.verify import verify
from tests.datasets import make_dataset


def test_a_sound_dataset_is_called_sound_with_what_was_read(tmp_path: Path) -> None:
    make_dataset(tmp_path, failed_per_shard=1)
    (line,) = verify(tmp_path).lines()
    assert line.startswith("sound: 2 splits, 3 shards, 21 samples of 24 items, ")


def test_every_damage_and_note_has_a_line_without_control_characters(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    (tmp_path / "val-000000.tar").unlink()
    data = bytearray((tmp_path / "train-000000.tar").read_bytes())
    data[700] ^= 1
    (tmp_path / "train-000000.tar").write_bytes(data)
    (tmp_path / "x\x1b[2J\n.txt").write_text("")
    lines = verify(tmp_path).lines()
    assert lines[0].startswith("DAMAGED in 2 files: ")
    assert lines[1].startswith("  train-000000.tar, sample 000000000: ")
    assert lines[2:] == [
        "  val-000000.tar: is missing",
        "note: x\\x1b[2J\\n.txt: does not belong to the dataset",
    ]
    assert all(line.isprintable() for line in lines)


def test_json_is_plain(tmp_path: Path) -> None:
    make_dataset(tmp_path)
    (tmp_path / "val.index.arrow").unlink()
    content = json.loads(json.dumps(verify(tmp_path).to_json()))
    assert content["sound"] is False
    assert content["damage"] == [{"file": "val.index.arrow", "sample": None, "what": "is missing"}]
    assert (content["splits"], content["shards"], content["samples"], content["notes"]) == (2, 3, 21, [])
