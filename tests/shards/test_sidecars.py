"""Sidecars say what the dataset says, are verified, and come and go with it. Real readers: tests/interop."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.layout import is_own_file
from shardforge.shards.manifest import Manifest
from shardforge.shards.sidecars import KINDS, write_sidecars
from shardforge.shards.verify import verify
from tests.datasets import make_dataset
from tests.foreign_tars import samples, write_tar
from tests.pictures import class_folders, digest_tree, run

NAMES = ["_info.json", "train-000000.idx", "train-000001.idx", "train.shardindex.json"]
NAMES += ["val-000000.idx", "val.shardindex.json"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    make_dataset(root, {"train": [4, 3], "val": [2]}, sidecars=("txt",), optional=("txt",), failed_per_shard=1)
    return root


def test_dali_lines_are_those_of_the_tar(data: Path) -> None:
    write_sidecars(data, Manifest.read(data), ["dali"])
    head, *lines = (data / "train-000001.idx").read_text().splitlines()
    assert head == "v1.2 3"
    with tarfile.open(data / "train-000001.tar") as tar:
        members = [(m.name, m.offset_data, m.size) for m in tar]
    expected: dict[str, list[str]] = {}
    for name, offset, size in members:
        key, _, field = name.partition(".")
        expected.setdefault(key, []).append(f"{field} {offset} {size} {name}")
    assert lines == [" ".join(parts) for parts in expected.values()]


def test_wids_and_timm_name_every_shard_with_its_samples(data: Path) -> None:
    write_sidecars(data, Manifest.read(data), ["wids", "timm"])
    index = json.loads((data / "train.shardindex.json").read_bytes())
    assert (index["__kind__"], index["wids_version"]) == ("wids-shard-index-v1", 1)
    tar = (data / "train-000000.tar").read_bytes()
    first = {"url": "train-000000.tar", "nsamples": 4, "filesize": len(tar)}
    assert index["shardlist"][0] == {**first, "md5sum": hashlib.md5(tar, usedforsecurity=False).hexdigest()}
    assert [shard["nsamples"] for shard in index["shardlist"]] == [4, 3]
    splits = json.loads((data / "_info.json").read_bytes())["splits"]
    assert splits["train"] == {
        "name": "train",
        "num_samples": 7,
        "filenames": ["train-000000.tar", "train-000001.tar"],
        "shard_lengths": [4, 3],
    }
    assert set(splits) == {"train", "val"}


def test_they_are_sound_own_files_and_no_part_of_the_identity(data: Path) -> None:
    before = digest_tree(data)
    assert sorted(write_sidecars(data, Manifest.read(data), KINDS)) == NAMES
    assert all(is_own_file(name) for name in NAMES)
    found = verify(data)
    assert (found.damage, found.notes) == ((), ())
    assert {name: digest for name, digest in digest_tree(data).items() if name not in NAMES} == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", ["longer", "empty", "remove"])
def test_a_changed_or_missing_sidecar_is_named(data: Path, name: str, change: str) -> None:
    write_sidecars(data, Manifest.read(data), KINDS)
    content = (data / name).read_bytes()
    if change == "remove":
        (data / name).unlink()
    else:
        (data / name).write_bytes(content + b" " if change == "longer" else b"")
    damage = [entry.file for entry in verify(data).damage]
    assert damage == ([] if change == "remove" and name == "_info.json" else [name])


def test_a_sidecar_of_a_shard_that_is_not_there_is_named(data: Path) -> None:
    (data / "train-000007.idx").write_text("v1.2 0\n")
    assert [damage.file for damage in verify(data).damage] == ["train-000007.idx"]


def test_a_build_writes_them_when_asked_and_removes_them_with_the_dataset(tmp_path: Path) -> None:
    raw, out = class_folders(tmp_path / "raw", {"a": 3, "b": 3}), tmp_path / "out"
    shardforge.build(raw, out, quiet=True)
    assert run("build", raw, out, "--sidecars", "wids,dali", "--quiet").returncode == 0
    assert {"train.shardindex.json", "train-000000.idx"} <= {path.name for path in out.iterdir()}
    assert verify(out).sound
    shardforge.build(raw, out, size=32, overwrite=True, quiet=True)
    assert not [path for path in out.iterdir() if path.name in NAMES]
    with pytest.raises(UsageError, match="sidecars for 'ffcv' are not known"):
        shardforge.build(raw, tmp_path / "other", sidecars=["ffcv"], quiet=True)
    assert not (tmp_path / "other").exists()


def test_an_index_writes_them_beside_the_tars_but_over_nothing_of_others(tmp_path: Path) -> None:
    write_tar(tmp_path / "sub" / "a b.tar", samples(range(3)))
    shardforge.index(tmp_path, sidecars=KINDS, quiet=True)
    assert (tmp_path / "sub" / "a b.idx").read_text().startswith("v1.2 3\n")
    assert json.loads((tmp_path / "_info.json").read_bytes())["splits"]["train"]["filenames"] == ["sub/a b.tar"]
    assert verify(tmp_path).sound
    (tmp_path / "sub" / "a b.idx").write_text("v1.2 2\n")
    assert [damage.file for damage in verify(tmp_path).damage] == ["sub/a b.idx"]
    shardforge.index(tmp_path, sidecars=["dali"], quiet=True)
    assert verify(tmp_path).sound
    (tmp_path / "_info.json").write_text('{"splits": "mine"}')
    with pytest.raises(UsageError, match="somebody else's"):
        shardforge.index(tmp_path, sidecars=["timm"], quiet=True)
    assert (tmp_path / "_info.json").read_text() == '{"splits": "mine"}'
    write_tar(tmp_path / "sub" / "a b.tar", samples(range(4)))
    shardforge.index(tmp_path, quiet=True)
    assert (tmp_path / "sub" / "a b.idx").read_text().startswith("v1.2 4\n")
    assert (tmp_path / "_info.json").read_text() == '{"splits": "mine"}'
    assert verify(tmp_path).sound


def test_the_only_split_has_its_wids_index_under_the_usual_name_too(data: Path, tmp_path: Path) -> None:
    write_sidecars(data, Manifest.read(data), ["wids"])
    assert not (data / "shardindex.json").exists()
    write_tar(tmp_path / "one" / "a.tar", samples(range(3)))
    shardforge.index(tmp_path / "one", sidecars=["wids"], quiet=True)
    usual, own = tmp_path / "one" / "shardindex.json", tmp_path / "one" / "train.shardindex.json"
    assert usual.read_bytes() == own.read_bytes()
    assert json.loads(usual.read_bytes())["shardlist"][0]["url"] == "a.tar"
    assert verify(tmp_path / "one").sound
    usual.write_bytes(b"{}")
    assert verify(tmp_path / "one").sound, "somebody else's"
    shardforge.index(tmp_path / "one", sidecars=["wids"], quiet=True)
    assert usual.read_bytes() == b"{}"


def test_a_built_dataset_of_one_split_is_sound_with_both_names(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [2]})
    assert write_sidecars(tmp_path, Manifest.read(tmp_path), ["wids"]) == ["train.shardindex.json", "shardindex.json"]
    assert verify(tmp_path).sound
    (tmp_path / "shardindex.json").write_bytes(b"")
    assert [damage.file for damage in verify(tmp_path).damage] == ["shardindex.json"]
