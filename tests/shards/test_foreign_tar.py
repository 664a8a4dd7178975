"""``ForeignWalk`` finds what Python's ``tarfile`` finds, in archives of every format and with every oddity."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shardforge.shards.foreign_scan import member_parts
from shardforge.shards.foreign_tar import ForeignWalk
from shardforge.shards.one_pass import OnePass

UNHURRIED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]
NAMES = st.builds(str.__add__, st.sampled_from("abcö"), st.text("abcö é.-_", max_size=11))
PATHS = st.lists(NAMES, min_size=1, max_size=20).map("/".join)
KINDS = st.sampled_from(
    [tarfile.REGTYPE] * 4 + [tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.CONTTYPE]
)


def archive(entries: list[tuple[str, bytes, bytes]], format: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format, encoding="utf-8") as tar:
        for name, kind, payload in entries:
            info = tarfile.TarInfo(name)
            info.type = kind
            if info.isreg():
                info.size = len(payload)
            info.mtime = 1.5 if format == tarfile.PAX_FORMAT else 1
            if kind == tarfile.SYMTYPE:
                info.linkname = "elsewhere/" * 15 if format != tarfile.USTAR_FORMAT else "elsewhere"
            tar.addfile(info, io.BytesIO(payload))
    return file.getvalue()


def walk(data: bytes, path: Path) -> tuple[list[tuple[str, int, int]], ForeignWalk]:
    path.write_bytes(data)
    with open(path, "rb") as file:
        found = ForeignWalk(OnePass(file), len(data))
        return [(member.name, member.offset, member.size) for member in found], found


@UNHURRIED
@given(
    entries=st.lists(st.tuples(PATHS, KINDS, st.binary(max_size=1500)), max_size=8), format=st.sampled_from(FORMATS)
)
@example(entries=[("a/" * 120 + "b", tarfile.REGTYPE, b"x")], format=tarfile.GNU_FORMAT)
@example(entries=[("a/" * 120 + "b", tarfile.REGTYPE, b"x")], format=tarfile.PAX_FORMAT)
@example(entries=[("a/" * 120 + "b", tarfile.AREGTYPE, b"x" * 600)], format=tarfile.GNU_FORMAT)
@example(entries=[("a/" * 120 + "b", tarfile.AREGTYPE, b"x" * 600)], format=tarfile.PAX_FORMAT)
def test_members_are_those_of_tarfile(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, bytes, bytes]], format: int
) -> None:
    try:
        data = archive(entries, format)
    except ValueError:
        return  # a name too long for USTAR
    found, state = walk(data, tmp_path_factory.getbasetemp() / "walk.tar")
    # The types 0 and "0" mean the same (POSIX.1-1988), and the layout is the same; but tarfile takes a file of type 0
    # for a folder where its name, cut to 100 bytes, ends in a slash.
    as_regular = [(name, kind if kind != tarfile.AREGTYPE else tarfile.REGTYPE, body) for name, kind, body in entries]
    with tarfile.open(fileobj=io.BytesIO(archive(as_regular, format)), encoding="utf-8") as tar:
        expected = [(m.name, m.offset_data, m.size) for m in tar.getmembers() if m.isreg()]
    assert found == expected
    assert state.damage is None


@UNHURRIED
@given(data=st.data())
def test_whatever_is_cut_off_the_members_before_are_found_and_the_cut_is_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = archive([(f"{n}.bin", tarfile.REGTYPE, bytes([n + 1]) * (n * 400)) for n in range(5)], tarfile.PAX_FORMAT)
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = [(m.name, m.offset_data, m.size) for m in tar.getmembers()]
    end = max(offset + size + -size % 512 for _, offset, size in members)
    length = data.draw(st.integers(0, end))
    found, state = walk(whole[:length], tmp_path_factory.getbasetemp() / "cut.tar")
    assert found == [m for m in members if m[1] + m[2] <= length and (m[2] or m[1] <= length)]
    assert state.damage is not None


@UNHURRIED
@given(data=st.data())
def test_flipped_bytes_never_raise_and_never_reach_outside(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    entries = [("a/" * 60 + f"{n}", tarfile.REGTYPE, b"x" * 300) for n in range(2)]
    content = bytearray(archive(entries, data.draw(st.sampled_from(FORMATS[1:]))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    found, _ = walk(bytes(content), tmp_path_factory.getbasetemp() / "flipped.tar")
    assert all(offset >= 0 and offset + size <= len(content) for _, offset, size in found)


@pytest.mark.parametrize("name", ["folder/", "a/" * 120])
def test_old_regular_files_with_a_slash_at_the_end_are_folders(tmp_path: Path, name: str) -> None:
    """V7 has no other folders; a name of more than 100 bytes comes in a header of its own."""
    data = archive([(name, tarfile.AREGTYPE, b""), ("b.txt", tarfile.REGTYPE, b"after")], tarfile.GNU_FORMAT)
    found, state = walk(data, tmp_path / "a.tar")
    assert [name for name, _, _ in found] == ["b.txt"]
    assert (state.skipped, state.damage) == ({"folders": 1}, None)


def sparse_header(name: str, maps: int, stored: int) -> bytes:
    """An old GNU sparse file by hand (GNU tar manual, "Storing Sparse Files"): 4 maps here, 21 per further block."""
    info = tarfile.TarInfo(name)
    info.type, info.size = tarfile.GNUTYPE_SPARSE, stored
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    entry = b"00000000000\0" + b"00000000001\0"
    block[386:482] = entry * 4
    block[482] = maps > 4
    block[483:495] = b"00000000777\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    more = [entry * 21 + bytes([maps > 4 + 21 * n]) + bytes(7) for n in range(1, -(-(maps - 4) // 21) + 1)]
    return bytes(block) + b"".join(more)


@pytest.mark.parametrize("maps", [1, 5, 30])
def test_sparse_files_are_passed_over_with_all_their_maps(tmp_path: Path, maps: int) -> None:
    after = archive([("b.txt", tarfile.REGTYPE, b"after")], tarfile.GNU_FORMAT)
    data = sparse_header("a.bin", maps, 700) + b"s" * 700 + bytes(324) + after
    found, state = walk(data, tmp_path / "a.tar")
    assert [name for name, _, _ in found] == ["b.txt"]
    assert state.skipped == {"sparse files": 1}


def test_pax_sparse_files_are_passed_over(tmp_path: Path) -> None:
    info = tarfile.TarInfo("GNUSparseFile.0/a.bin")
    info.size, info.pax_headers = 4, {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "a.bin"}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(b"1\n0\n"))
    found, state = walk(file.getvalue(), tmp_path / "a.tar")
    assert (found, state.skipped) == ([], {"sparse files": 1})


def test_global_pax_headers_and_binary_sizes(tmp_path: Path) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "x" * 3000}) as tar:
        info = tarfile.TarInfo("a.txt")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    data = bytearray(file.getvalue())
    at = data.index(b"a.txt")
    # GNU's base-256 number in place of octal digits, and the checksum that belongs to it.
    data[at + 124 : at + 136] = b"\x80" + (3).to_bytes(11, "big")
    data[at + 148 : at + 156] = b" " * 8
    data[at + 148 : at + 156] = b"%06o\0 " % sum(data[at : at + 512])
    found, _ = walk(bytes(data), tmp_path / "a.tar")
    assert found == [("a.txt", at + 512, 3)]


def test_bytes_of_names_that_are_no_utf8_are_escaped(tmp_path: Path) -> None:
    data = bytearray(archive([("aXb.txt", tarfile.REGTYPE, b"")], tarfile.USTAR_FORMAT))
    data[1] = 0xFF
    data[148:156] = b" " * 8
    data[148:156] = b"%06o\0 " % sum(data[:512])
    assert walk(bytes(data), tmp_path / "a.tar")[0] == [(r"a\xffb.txt", 512, 0)]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.jpg", ("a", "jpg")),
        ("a.JPEG", ("a", "jpg")),
        ("dir.v2/a.Seg.PNG", ("dir.v2/a", "seg.png")),
        ("a.left.jpeg", ("a", "left.jpg")),
        ("a", (None, "members without a suffix")),
        ("a.", (None, "members without a suffix")),
        (".hidden", (None, "hidden files")),
        ("dir/._a.jpg", (None, "hidden files")),
        ("__meta__.json", (None, "webdataset's own metadata")),
        ("__x__/a.jpg", (None, "webdataset's own metadata")),
        ("a.b c", (None, "members whose suffix is no field name")),
    ],
)
def test_names_are_cut_as_webdataset_cuts_them(name: str, parts: Any) -> None:
    assert member_parts(name) == parts
