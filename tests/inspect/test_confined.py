"""Writing below a folder and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shardforge.errors import StorageError
from shardforge.inspect.confined import write_confined


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_slashes_are_folders_inside(tmp_path: Path) -> None:
    path = write_confined(tmp_path / "out", "a/b/c.jpg", b"x")
    assert path == tmp_path / "out" / "a" / "b" / "c.jpg"
    assert path.read_bytes() == b"x"
    write_confined(tmp_path / "out", "a/b/d.jpg", b"y")
    assert names(tmp_path / "out" / "a" / "b") == ["c.jpg", "d.jpg"]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "a//b", "", ".", "..", "a/.", "a\0b"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="illegal name"):
        write_confined(tmp_path, name, b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_of_the_files_name_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"kept")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.jpg").symlink_to(target)
    os.link(target, tmp_path / "out" / "b.jpg")
    for name in ("a.jpg", "b.jpg"):
        path = write_confined(tmp_path / "out", name, b"new")
        assert not path.is_symlink()
        assert path.read_bytes() == b"new"
    assert target.read_bytes() == b"kept"


def test_a_link_instead_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot be written"):
        write_confined(tmp_path / "out", "a/b.jpg", b"x")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    write_confined(tmp_path / "out", "a.jpg", b"x")
    assert (tmp_path / "real" / "a.jpg").read_bytes() == b"x"


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be written"):
        write_confined(tmp_path, "a.jpg", b"x")
    for directory, name in ((tmp_path / "file", "a.jpg"), (tmp_path, "file/a.jpg")):
        with pytest.raises(StorageError, match="cannot be written"):
            write_confined(directory, name, b"x")
    assert names(tmp_path) == ["a.jpg", "file"]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(tmp_path)
    before = len(names(Path("/proc/self/fd")))
    for name in ("a/b/c.jpg", "d.jpg"):
        write_confined(tmp_path, name, b"x")
    with pytest.raises(StorageError):
        write_confined(tmp_path, "l/x.jpg", b"x")
    assert len(names(Path("/proc/self/fd"))) == before
