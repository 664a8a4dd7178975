"""Payload bytes from shards."""

from __future__ import annotations

import multiprocessing
import pickle
from pathlib import Path

import pytest

from shardforge.errors import DamagedError, StorageError
from shardforge.stream.fetch import ShardFiles


@pytest.fixture
def files(tmp_path: Path) -> ShardFiles:
    paths = [tmp_path / f"{i}.tar" for i in range(5)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i]) * 1000)
    return ShardFiles(paths, [1000] * 5)


def test_views_hold_the_bytes_asked_for(files: ShardFiles, tmp_path: Path) -> None:
    (tmp_path / "3.tar").write_bytes(bytes(range(250)) * 4)
    assert bytes(files.view(3, 10, 5)) == bytes([10, 11, 12, 13, 14])
    assert bytes(files.view(3, 995, 5)) == bytes([245, 246, 247, 248, 249])
    assert files.view(3, 0, 0).nbytes == 0
    assert files.view(3, 0, 9).readonly


def test_only_a_bounded_number_of_shards_stays_open_and_old_views_stay_valid(
    files: ShardFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_limit", 2)
    views = [files.view(i, 0, 1000) for i in range(5)]
    assert len(files._maps) == 2
    assert [bytes(view) for view in views] == [bytes([i]) * 1000 for i in range(5)]


def test_pickled_files_open_again(files: ShardFiles) -> None:
    files.view(1, 0, 1)
    assert bytes(pickle.loads(pickle.dumps(files)).view(1, 0, 2)) == b"\1\1"  # noqa: S301


def _read(files: ShardFiles, answers: multiprocessing.SimpleQueue) -> None:
    answers.put([bytes(files.view(i, 0, 3)) for i in range(5)])


def test_maps_survive_a_fork(files: ShardFiles) -> None:
    held = files.view(0, 0, 3)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_read, args=(files, answers))
    child.start()
    child.join()
    assert answers.get() == [bytes([i]) * 3 for i in range(5)]
    assert bytes(held) == bytes(3)


@pytest.mark.parametrize(("offset", "size"), [(998, 3), (-1, 2), (0, -1), (5000, 1)])
def test_extents_outside_the_shard_are_damage(files: ShardFiles, offset: int, size: int) -> None:
    with pytest.raises(DamagedError, match=r"2\.tar"):
        files.view(2, offset, size)


@pytest.mark.parametrize("shard", [5, -1])
def test_shards_that_the_manifest_does_not_have_are_damage(files: ShardFiles, shard: int) -> None:
    with pytest.raises(DamagedError):
        files.view(shard, 0, 1)


@pytest.mark.parametrize("length", [999, 1001, 0])
def test_a_shard_of_another_length_is_damage_and_never_a_crash(
    files: ShardFiles, tmp_path: Path, length: int
) -> None:
    (tmp_path / "4.tar").write_bytes(bytes(length))
    with pytest.raises(DamagedError, match="bytes long, not 1000"):
        files.view(4, 0, 1)


def test_a_missing_shard_is_named(files: ShardFiles, tmp_path: Path) -> None:
    (tmp_path / "4.tar").unlink()
    with pytest.raises(StorageError, match=r"4\.tar"):
        files.view(4, 0, 1)
