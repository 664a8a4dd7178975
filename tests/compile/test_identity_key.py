"""The key file: one per user, whole or absent, private, and never inside of what is published."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from shardforge.compile.identity_key import default_key_path, load_or_make
from shardforge.errors import StorageError, UsageError

GOOD = b"shardforge identity key 1\n" + b"0123456789abcdef" * 4 + b"\n"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _key_id(path: Path) -> tuple[str, bool]:
    found = load_or_make(path)
    return found.key.key_id, found.made


def test_the_first_use_makes_a_key_and_later_ones_find_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    first, second = load_or_make(None), load_or_make(None)
    assert first.path == tmp_path / "config" / "shardforge" / "identity.key"
    assert (first.made, second.made) == (True, False)
    assert first.key == second.key
    assert len(first.notes) == 1
    assert not second.notes
    assert _mode(first.path) == 0o600
    assert _mode(first.path.parent) == 0o700
    assert [path.name for path in first.path.parent.iterdir()] == ["identity.key"]


def test_a_umask_that_gives_everything_away_does_not_matter(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert _mode(load_or_make(tmp_path / "k").path) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("configured", ["", "relative/path"])
def test_without_a_configured_place_it_lies_below_the_home_folder(
    configured: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", configured)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_key_path() == tmp_path / ".config" / "shardforge" / "identity.key"


def test_two_new_keys_differ(tmp_path: Path) -> None:
    assert load_or_make(tmp_path / "a").key != load_or_make(tmp_path / "b").key


def test_builds_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        for round_ in range(20):
            found = list(pool.map(_key_id, [tmp_path / f"key{round_}"] * 8))
            assert len({key_id for key_id, _ in found}) == 1
            assert sum(made for _, made in found) == 1
    assert len(list(tmp_path.iterdir())) == 20


def test_a_key_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(GOOD)
    path.chmod(0o600)
    found = load_or_make(path)
    assert found.key.secret == bytes.fromhex("0123456789abcdef" * 4)
    assert not found.notes


@pytest.mark.parametrize(
    "data",
    [b"", GOOD[:-1], GOOD + b"\n", GOOD.upper(), GOOD.replace(b"0", b"g"), b"x" * 9999, GOOD.replace(b"1\n", b"2\n")],
)  # fmt: skip
def test_anything_else_is_refused_and_left_alone(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is no identity key"):
        load_or_make(path)
    assert path.read_bytes() == data


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "k")
    with pytest.raises(UsageError, match="is no identity key"):
        load_or_make(tmp_path / "k")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_used_with_a_warning(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "k"
    path.write_bytes(GOOD)
    path.chmod(mode)
    (note,) = load_or_make(path).notes
    assert "chmod 600" in note


def test_a_key_inside_source_or_output_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to(out / "sub")
    (tmp_path / "key").symlink_to(out / "key")
    (out / "leading_out").symlink_to(tmp_path / "elsewhere")
    for path in (
        out / "key", out / "sub" / "key", tmp_path / "link" / "key", tmp_path / "key", out / "leading_out", out,
        out / "not" / "made" / "yet",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="inside"):
            load_or_make(path, (tmp_path / "src", out))
    assert not (out / "key").exists()
    assert load_or_make(tmp_path / "outer", (tmp_path / "src", out)).made


def test_a_folder_that_is_missing_or_no_folder_is_told_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "absent" / "key", tmp_path / "file" / "key"):
        with pytest.raises(StorageError, match="--key-file"):
            load_or_make(path)
    with pytest.raises(StorageError, match="--key-file"):
        load_or_make(tmp_path)
