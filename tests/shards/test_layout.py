"""File names."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardforge.shards import layout


def test_shards_are_numbered_per_split_with_six_digits() -> None:
    name = layout.shard_name("train", 12)
    assert name == "train-000012"
    assert layout.tar_path(Path("out"), name) == Path("out/train-000012.tar")
    assert layout.parquet_path(Path("out"), name) == Path("out/train-000012.parquet")
    assert layout.index_path(Path("out"), "val") == Path("out/val.index.arrow")


@pytest.mark.parametrize(
    "name",
    ["train-000000.tar", "a_1-999999.parquet", "val.index.arrow", "dataset.json", "README.md", "build.json"],
)
def test_files_of_a_build_are_recognised(name: str) -> None:
    assert layout.is_own_file(name)


@pytest.mark.parametrize(
    "name",
    [
        "train-00000.tar",
        "train-0000000.tar",
        "train-000000.tar.gz",
        "x/train-000000.tar",
        "../train-000000.tar",
        "Train-000000.tar",
        "train-000000.tar\n",
        "notes.txt",
        ".staging",
        "my dataset.json",
        "train-٠٠٠٠٠٠.tar",
    ],
)
def test_files_of_others_are_left_alone(name: str) -> None:
    assert not layout.is_own_file(name)
