import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.zips import Archives, ZipLimits, is_member


def read_member(root: Path, path: str, limit: int) -> bytes:
    with Archives(root, keep=1) as archives:
        return archives.read(path, limit)


@pytest.fixture
def pack(tmp_path: Path) -> Callable[..., Path]:
    def _pack(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
        with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return tmp_path / "a.zip"

    return _pack


def refusal(root: Path, path: str = "a.zip", limits: ZipLimits = ZipLimits()) -> Reason:  # noqa: B008
    with Archives(root) as archives, pytest.raises(SampleError) as caught:
        archives.list(path, 0, limits)
    return caught.value.reason


def test_members_are_listed_with_their_paths_and_read_in_place(pack: Callable[..., Path], tmp_path: Path) -> None:
    pack({"p/1.dcm": b"one", "p/2": b"second"})
    with Archives(tmp_path) as archives:
        found = archives.list("a.zip", 77, ZipLimits())
        assert [(one.path, one.size, one.mtime_ns) for one in found.members] == [
            ("a.zip//p/1.dcm", 3, 77),
            ("a.zip//p/2", 6, 77),
        ]
        assert archives.read("a.zip//p/2", 6) == b"second"
        with archives.open("a.zip//p/1.dcm") as file:
            file.seek(1)
            assert file.read() == b"ne"
    assert read_member(tmp_path, "a.zip//p/1.dcm", 100) == b"one"
    assert is_member("a.zip//p/1.dcm")
    assert not is_member("a.zip/p/1.dcm")


def test_plain_files_open_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"plain")
    assert read_member(tmp_path, "x", 5) == b"plain"


def test_reading_stops_at_the_limit(pack: Callable[..., Path], tmp_path: Path) -> None:
    pack({"zeros": bytes(10_000_000)})
    with pytest.raises(SampleError) as caught:
        read_member(tmp_path, "a.zip//zeros", 9_999_999)
    assert caught.value.reason is Reason.OVER_BUDGET


def test_unsafe_hidden_and_repeated_names_are_left_alone(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("../up", "/abs", "C:/drive", "a\\..\\b", "__MACOSX/._x", ".hidden", "ok"):
            archive.writestr(name, b"x")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("ok", b"y")
    with Archives(tmp_path) as archives:
        found = archives.list("a.zip", 0, ZipLimits())
    assert [one.path for one in found.members] == ["a.zip//ok"]
    assert [why for _, why in found.unknown] == [
        *["unsafe name in an archive (not opened)"] * 4,
        *["hidden"] * 2,
        "another member of the archive has the same name",
    ]


def test_encrypted_members_and_other_methods_are_refused_by_name(pack: Callable[..., Path], tmp_path: Path) -> None:
    path = pack({"secret": b"x" * 50})
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[6] |= 1
    data[central + 8] |= 1
    path.write_bytes(data)
    with Archives(tmp_path) as archives:
        found = archives.list("a.zip", 0, ZipLimits())
        assert [(one.path, reason, why) for one, reason, why in found.refused] == [
            ("a.zip//secret", Reason.UNSUPPORTED, "encrypted")
        ]
    with pytest.raises(SampleError) as caught:
        read_member(tmp_path, "a.zip//secret", 100)
    assert caught.value.reason is Reason.UNSUPPORTED
    pack({"m": b"x" * 50}, zipfile.ZIP_LZMA)
    with Archives(tmp_path) as archives:
        assert [reason for _, reason, _ in archives.list("a.zip", 0, ZipLimits()).refused] == [Reason.UNSUPPORTED]


def test_bounds_are_kept_before_anything_is_unpacked(pack: Callable[..., Path], tmp_path: Path) -> None:
    pack({f"{i}": b"x" for i in range(10)})
    assert refusal(tmp_path, limits=ZipLimits(members=9)) is Reason.OVER_BUDGET
    assert refusal(tmp_path, limits=ZipLimits(directory=10 * 46)) is Reason.OVER_BUDGET
    pack({"zeros": bytes(1_000_000)})
    assert refusal(tmp_path, limits=ZipLimits(total=999_999)) is Reason.OVER_BUDGET
    assert refusal(tmp_path, limits=ZipLimits(ratio=100)) is Reason.OVER_BUDGET


def test_members_that_share_their_bytes_are_a_bomb(pack: Callable[..., Path], tmp_path: Path) -> None:
    path = pack({"a": bytes(1_000_000)})
    data = path.read_bytes()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    entry = data[start:end]
    copies = [entry[:46] + name + entry[47:] for name in (b"a", b"b", b"c", b"d", b"e")]
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 5, 5, len(entry) * 5, start, 0)
    path.write_bytes(data[:start] + b"".join(copies) + tail)
    assert refusal(tmp_path) is Reason.OVER_BUDGET


@pytest.mark.parametrize("size", [0, 4, 30, 60])
def test_damaged_archives_are_corrupt(pack: Callable[..., Path], tmp_path: Path, size: int) -> None:
    path = pack({"a": b"x" * 100, "b": b"y" * 100})
    path.write_bytes(path.read_bytes()[:size])
    assert refusal(tmp_path) is Reason.CORRUPT


def test_damaged_members_are_corrupt(pack: Callable[..., Path], tmp_path: Path) -> None:
    path = pack({"a": bytes(range(256)) * 20})
    data = bytearray(path.read_bytes())
    data[40:80] = bytes(40)
    path.write_bytes(data)
    with pytest.raises(SampleError) as caught:
        read_member(tmp_path, "a.zip//a", 10_000)
    assert caught.value.reason is Reason.CORRUPT


def test_missing_members_and_archives_are_missing_files(pack: Callable[..., Path], tmp_path: Path) -> None:
    pack({"a": b""})
    for path in ("a.zip//b", "b.zip//a", "b"):
        with pytest.raises(SampleError) as caught:
            read_member(tmp_path, path, 10)
        assert caught.value.reason is Reason.MISSING_FILE


def test_few_archives_are_open_at_a_time(tmp_path: Path) -> None:
    for i in range(10):
        with zipfile.ZipFile(tmp_path / f"{i}.zip", "w") as archive:
            archive.writestr("a", f"{i}")
    before = len(list(Path("/proc/self/fd").iterdir()))
    with Archives(tmp_path, keep=2) as archives:
        for _ in range(2):
            for i in range(10):
                assert archives.read(f"{i}.zip//a", 9) == f"{i}".encode()
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
    assert len(list(Path("/proc/self/fd").iterdir())) == before
