"""What lies in a folder tree, and what must never be opened."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shardforge.errors import StorageError, UsageError
from shardforge.sources.item import Scan
from shardforge.sources.scan import SourceOptions, scan

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
Lay = Callable[..., Path]


def unknown(found: Scan) -> dict[str, str]:
    return {thing.path: thing.why for thing in found.unknown}


def sources(found: Scan) -> list[str]:
    return [item.source for item in found.items]


def test_everything_is_an_item_or_an_unknown_file(lay: Lay) -> None:
    root = lay("a/1.jpg", "b/2.PNG", contents={"a/notes.pdf": "%PDF-1.7", "b/raw": b"\0\1\2", "b/1.txt": "x"})
    found = scan(root, SourceOptions())
    assert sources(found) == ["a/1.jpg", "b/2.PNG"]
    assert unknown(found) == {
        "a/notes.pdf": "not an image or sidecar",
        "b/1.txt": "no image with this name",
        "b/raw": "not an image or sidecar",
    }


def test_files_without_an_images_extension_are_recognised_by_content(lay: Lay) -> None:
    dicom = bytes(128) + b"DICM" + bytes(16)
    root = lay("plain", "odd.xyz", ".dot", contents={"1.2.840.113": dicom, "empty": b"", "scan.DCM": dicom})
    found = scan(root, SourceOptions())
    assert sources(found) == [".dot", "1.2.840.113", "odd.xyz", "plain", "scan.DCM"]
    assert unknown(found) == {"empty": "not an image or sidecar"}


def test_an_images_extension_counts_whatever_the_content(lay: Lay) -> None:
    found = scan(lay(contents={"a.JpEg": b"", "b.tiff": "text"}), SourceOptions())
    assert sources(found) == ["a.JpEg", "b.tiff"]
    assert [item.files["image"].size for item in found.items] == [0, 4]


def test_what_systems_leave_behind_is_reported_as_hidden(lay: Lay) -> None:
    leavings = [".DS_Store", "._a.jpg", "Thumbs.db", "desktop.ini", ".json"]
    found = scan(lay("a.jpg", contents=dict.fromkeys(leavings, "x")), SourceOptions())
    assert sources(found) == ["a.jpg"]
    assert unknown(found) == dict.fromkeys(leavings, "hidden")


def test_hidden_folders_are_no_classes_but_their_files_are_reported(lay: Lay) -> None:
    root = lay("cat/a.jpg", ".ipynb_checkpoints/a-checkpoint.jpg", "cat/.cache/deep/b.jpg")
    found = scan(root, SourceOptions())
    assert sources(found) == ["cat/a.jpg"]
    assert set(unknown(found).values()) == {"in a hidden folder"}
    assert len(found.unknown) == 2


def test_pipes_and_sockets_are_reported_and_never_opened(lay: Lay, source: Path) -> None:
    lay("a.jpg")
    os.mkfifo(source / "pipe.jpg")
    os.mkfifo(source / "pipe")
    (source / "link.jpg").symlink_to("pipe.jpg")
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(str(source / "socket"))
        found = scan(source, SourceOptions())
    assert sources(found) == ["a.jpg"]
    assert unknown(found) == dict.fromkeys(["link.jpg", "pipe", "pipe.jpg", "socket"], "not a regular file")


def test_links_inside_the_source_are_followed(lay: Lay, source: Path) -> None:
    lay("pool/a.jpg", "pool/sub/b.jpg")
    (source / "cat").symlink_to("pool/sub")
    (source / "dog").mkdir()
    (source / "dog" / "c.jpg").symlink_to(source / "pool" / "a.jpg")
    found = scan(source, SourceOptions())
    assert sources(found) == ["cat/b.jpg", "dog/c.jpg", "pool/a.jpg", "pool/sub/b.jpg"]
    assert found.unknown == []
    assert any(note.startswith("2 symbolic links lead to other places of the source") for note in found.notes)


def test_links_out_of_the_source_need_follow_symlinks(lay: Lay, source: Path, tmp_path: Path) -> None:
    lay("a/1.jpg")
    outside = tmp_path / "raw-too"  # its name begins with the source folder's name
    outside.mkdir()
    (outside / "2.jpg").write_bytes(b"x")
    (source / "b").symlink_to(outside)
    (source / "a" / "3.jpg").symlink_to("../../raw-too/2.jpg")
    found = scan(source, SourceOptions())
    assert sources(found) == ["a/1.jpg"]
    assert unknown(found) == dict.fromkeys(["a/3.jpg", "b"], "symbolic link out of the source folder")
    followed = scan(source, SourceOptions(follow_symlinks=True))
    assert sources(followed) == ["a/1.jpg", "a/3.jpg", "b/2.jpg"]
    assert followed.unknown == []


def test_a_chain_of_links_that_ends_outside_leaves_the_source(lay: Lay, source: Path, tmp_path: Path) -> None:
    lay("a.jpg")
    (tmp_path / "x.jpg").write_bytes(b"x")
    (source / "one.jpg").symlink_to("two.jpg")
    (source / "two.jpg").symlink_to("../x.jpg")
    found = scan(source, SourceOptions())
    assert unknown(found) == dict.fromkeys(["one.jpg", "two.jpg"], "symbolic link out of the source folder")


def test_broken_links_and_links_to_themselves_are_reported(lay: Lay, source: Path) -> None:
    lay("a.jpg")
    (source / "gone.jpg").symlink_to("nowhere.jpg")
    (source / "self.jpg").symlink_to("self.jpg")
    (source / "through.jpg").symlink_to("a.jpg/b.jpg")
    found = scan(source, SourceOptions())
    assert unknown(found) == dict.fromkeys(["gone.jpg", "self.jpg", "through.jpg"], "broken symbolic link")


@pytest.mark.parametrize("follow", [False, True])
def test_loops_of_links_end(lay: Lay, source: Path, follow: bool) -> None:
    lay("a/1.jpg", "b/2.jpg")
    (source / "a" / "up").symlink_to("..")
    (source / "a" / "to_b").symlink_to("../b")
    (source / "b" / "to_a").symlink_to("../a")
    found = scan(source, SourceOptions(follow_symlinks=follow))
    assert sources(found) == ["a/1.jpg", "a/to_b/2.jpg", "b/2.jpg", "b/to_a/1.jpg"]
    assert unknown(found) == dict.fromkeys(
        ["a/to_b/to_a", "a/up", "b/to_a/to_b", "b/to_a/up"], "symbolic link to a folder it lies in"
    )


def test_the_source_folder_may_be_a_link_itself(lay: Lay, source: Path, tmp_path: Path) -> None:
    lay("cat/a.jpg")
    (tmp_path / "alias").symlink_to(source)
    assert sources(scan(tmp_path / "alias", SourceOptions())) == ["cat/a.jpg"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _scan_unprivileged(root: Path) -> str:
    """The error that scanning ends with for a user whom permissions stop."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "import shardforge.sources.scan as s\n"
        "import shardforge.errors as e, os\n"
        "if os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "try: found = s.scan(Path(sys.argv[2]), s.SourceOptions())\n"
        "except e.ShardforgeError as error: print(type(error).__name__, error)\n"
        "else: print([i.source for i in found.items], [(u.path, u.why) for u in found.unknown])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(root)], capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout.strip()


@pytest.mark.parametrize("mode", [0o000, 0o444], ids=["unlistable", "unenterable"])
def test_a_folder_that_cannot_be_read_stops_the_scan(open_folder: Path, mode: int) -> None:
    (open_folder / "cat").mkdir()
    (open_folder / "a.jpg").write_bytes(b"x")
    locked = open_folder / "locked"
    locked.mkdir()
    (locked / "b.jpg").write_bytes(b"x")
    locked.chmod(mode)
    try:
        told = _scan_unprivileged(open_folder)
    finally:
        locked.chmod(0o755)
    assert told.startswith("StorageError")
    assert str(locked) in told
    assert "Permission denied" in told


def test_an_unreadable_file_is_an_item_by_name_and_else_unknown(open_folder: Path) -> None:
    for name in ("a.jpg", "b"):
        (open_folder / name).write_bytes(b"\x89PNG\r\n\x1a\n")
        (open_folder / name).chmod(0)
    assert _scan_unprivileged(open_folder) == "['a.jpg'] [('b', 'cannot be read')]"


def test_a_missing_root_or_a_file_as_root_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        scan(tmp_path / "absent", SourceOptions())
    (tmp_path / "file.jpg").write_bytes(b"x")
    with pytest.raises(UsageError, match="is not a folder"):
        scan(tmp_path / "file.jpg", SourceOptions())
    with pytest.raises(UsageError, match="there is no such folder"):
        scan(tmp_path / "file.jpg" / "below", SourceOptions())


def test_a_source_without_images_says_what_it_holds(lay: Lay, source: Path) -> None:
    with pytest.raises(UsageError, match="holds no files at all"):
        scan(source, SourceOptions())
    lay(contents={"a.pdf": "x", "b.pdf": "y", "c": "z"})
    (source / "gone").symlink_to("nowhere")
    with pytest.raises(
        UsageError, match=r"4 files, none of them an image \(2 \.pdf, 1 without extension, 1 × broken"
    ):
        scan(source, SourceOptions())


def test_a_folder_that_vanishes_is_a_storage_error(source: Path) -> None:
    from shardforge.sources.walk import walk

    (source / "a").mkdir()
    (source / "b").mkdir()
    folders = walk(str(source), follow_symlinks=False)
    assert next(folders).path == ""
    (source / "a").rmdir()
    with pytest.raises(StorageError, match="cannot be listed"):
        list(folders)
