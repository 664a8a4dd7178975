"""Shards against the standard's layout, Python's tarfile and GNU tar."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import imagecodecs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.shards.tar import (
    END_OF_ARCHIVE,
    MAX_NAME,
    TarDamage,
    TarWriter,
    header,
    is_field,
    is_key,
    split_name,
    walk,
)

SAMPLES = {
    "000000000": {"jpg": b"\xff\xd8" + bytes(700), "cls": b"7"},
    "000000001": {"jpg": bytes(range(256)) * 2, "cls": b""},
    "a/b-c_D/x1": {"mask.png": b"m" * 513, "json": b"{}", "jpg": b"j"},
}


def write(path: Path, samples: dict[str, dict[str, bytes]] = SAMPLES) -> str:
    writer = TarWriter(path)
    for key, fields in samples.items():
        writer.add(key, fields)
    return writer.finish()


def test_tarfile_reads_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar", "r:") as tar:
        assert tar.pax_headers == {}
        found = [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
        assert all(member.isreg() and member.mtime == 0 and member.mode == 0o644 for member in tar)
        assert all((member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "") for member in tar)
    expected = [(f"{key}.{field}", fields[field]) for key, fields in SAMPLES.items() for field in sorted(fields)]
    assert found == expected


def test_gnu_tar_lists_and_extracts_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "a.tar")
    listed = subprocess.run(
        ["tar", "tvf", tmp_path / "a.tar", "--numeric-owner", "--utc"], capture_output=True, text=True, check=True
    )
    assert listed.stderr == ""
    lines = [line.split() for line in listed.stdout.splitlines()]
    assert {tuple(line[:2]) for line in lines} == {("-rw-r--r--", "0/0")}
    assert {line[3] for line in lines} == {"1970-01-01"}
    members = {f"{key}.{field}": data for key, fields in SAMPLES.items() for field, data in fields.items()}
    assert {line[-1]: int(line[2]) for line in lines} == {name: len(data) for name, data in members.items()}
    subprocess.run(["tar", "xf", tmp_path / "a.tar", "-C", tmp_path], check=True)
    assert all((tmp_path / name).read_bytes() == data for name, data in members.items())


@pytest.mark.parametrize("name", ["a.jpg", "deep/down/0-_.mask.png", "x" * 100])
@pytest.mark.parametrize("size", [0, 1, 511, 12345, 8 * 2**30 - 1])
def test_headers_are_those_of_tarfile(name: str, size: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = size
    assert header(name, size) == info.tobuf(tarfile.USTAR_FORMAT)


@pytest.mark.parametrize(("name", "size"), [("x" * 101, 1), ("ä.jpg", 1), ("a.jpg", 8 * 2**30), ("a.jpg", -1)])
def test_headers_refuse_what_does_not_fit(name: str, size: int) -> None:
    with pytest.raises(ValueError, match=r"illegal member|ascii"):
        header(name, size)


def test_header_is_laid_out_as_posix_ustar_says() -> None:
    # IEEE Std 1003.1, pax, "ustar Interchange Format": offset and length of every field.
    block = header("000000012.jpg", 0o1234567)
    assert len(block) == 512
    fields = {
        (0, 100): b"000000012.jpg",
        (100, 8): b"0000644\0",
        (108, 8): b"0000000\0",
        (116, 8): b"0000000\0",
        (124, 12): b"00001234567\0",
        (136, 12): b"00000000000\0",
        (156, 1): b"0",
        (157, 100): b"",
        (257, 6): b"ustar\0",
        (263, 2): b"00",
        (265, 32): b"",
        (297, 32): b"",
        (345, 155): b"",
        (500, 12): b"",
    }
    for (start, length), content in fields.items():
        if start not in (329, 337):
            assert block[start : start + length] == content.ljust(length, b"\0"), start
    # Device numbers may be zero digits or empty; both mean none.
    assert set(block[329:345]) <= {0, ord("0")}
    checksum = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
    assert int(block[148:156].rstrip(b" \0"), 8) == checksum


@pytest.mark.parametrize("crc32", [zlib.crc32, imagecodecs.deflate_crc32])
def test_sizes_add_up_and_the_digest_is_that_of_the_file(tmp_path: Path, crc32: Callable[[bytes, int], int]) -> None:
    writer = TarWriter(tmp_path / "a.tar", crc32=crc32)
    written = [writer.add(key, fields) for key, fields in SAMPLES.items()]
    digest = writer.finish()
    data = (tmp_path / "a.tar").read_bytes()
    assert hashlib.sha256(data).hexdigest() == digest
    blocks = [1 + -(-len(payload) // 512) for fields in SAMPLES.values() for payload in fields.values()]
    assert len(data) == writer.size == 512 * sum(blocks) + 1024
    assert data.endswith(END_OF_ARCHIVE)
    assert [sample.start for sample in written] == [0, *(sample.end for sample in written[:-1])]
    for (key, fields), sample in zip(SAMPLES.items(), written, strict=True):
        assert zlib.crc32(data[sample.start : sample.end]) == sample.crc32, key
        for field, extent in sample.extents.items():
            assert data[extent.offset : extent.offset + extent.size] == fields[field]


@pytest.mark.parametrize("kept", [0, 1, 2, 3])
@pytest.mark.parametrize("rubbish", [b"", b"half a header", bytes(5000)])
def test_continuing_an_interrupted_shard_gives_the_same_bytes(tmp_path: Path, kept: int, rubbish: bytes) -> None:
    digest = write(tmp_path / "whole.tar")
    writer = TarWriter(tmp_path / "again.tar")
    for key in list(SAMPLES)[:kept]:
        writer.add(key, SAMPLES[key])
    size = writer.size
    writer.abandon()
    with open(tmp_path / "again.tar", "ab") as file:
        file.write(rubbish)
    writer = TarWriter(tmp_path / "again.tar", keep=size)
    for key in list(SAMPLES)[kept:]:
        writer.add(key, SAMPLES[key])
    assert writer.finish() == digest
    assert (tmp_path / "again.tar").read_bytes() == (tmp_path / "whole.tar").read_bytes()


def test_a_file_shorter_than_its_journal_is_not_continued(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(bytes(1024))
    with pytest.raises(TarDamage, match="shorter"):
        TarWriter(tmp_path / "a.tar", keep=1536)


def test_a_member_name_may_have_a_hundred_bytes_and_no_more(tmp_path: Path) -> None:
    writer = TarWriter(tmp_path / "a.tar")
    key = "k" * (MAX_NAME - len(".jpg"))
    writer.add(key, {"jpg": b"x"})
    with pytest.raises(ValueError, match="illegal member"):
        writer.add("q" * (MAX_NAME - len(".jpg") + 1), {"jpg": b"x"})
    writer.finish()
    with tarfile.open(tmp_path / "a.tar", "r:") as tar:
        assert tar.getnames() == [f"{key}.jpg"]


@pytest.mark.parametrize(
    "key", ["", "a.b", "__meta", "/a", "a/", "a//b", "a b", "ä", "a\n", "../a", "a\0", "a\\b", "%", "__"]
)
def test_illegal_keys_are_refused_and_nothing_is_written(tmp_path: Path, key: str) -> None:
    assert not is_key(key)
    writer = TarWriter(tmp_path / "a.tar")
    with pytest.raises(ValueError, match="illegal"):
        writer.add(key, {"jpg": b"x"})
    writer.abandon()
    assert (tmp_path / "a.tar").stat().st_size == 0


@pytest.mark.parametrize("field", ["", "JPG", ".jpg", "jpg.", "a..b", "a/b", "j pg", "ä", "jpg\n"])
def test_illegal_fields_are_refused(tmp_path: Path, field: str) -> None:
    assert not is_field(field)
    writer = TarWriter(tmp_path / "a.tar")
    with pytest.raises(ValueError, match="illegal"):
        writer.add("a", {field: b"x"})


def test_a_key_ends_at_the_first_dot_of_the_base_name_as_in_webdataset() -> None:
    from webdataset.tariterators import base_plus_ext

    for name in ("a.jpg", "a/b.mask.png", "a.b/c.jpg", "x/y/000.seg.json"):
        assert split_name(name) == base_plus_ext(name)


def test_walk_finds_the_members_that_tarfile_finds(tmp_path: Path) -> None:
    write(tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar", "r:") as tar:
        expected = [(member.name, member.offset_data, member.size) for member in tar]
    with open(tmp_path / "a.tar", "rb") as file:
        assert [(member.name, member.offset, member.size) for member in walk(file)] == expected


def other_tar(format: int, name: str, **changes: object) -> bytes:
    """A tar that differs from the writer's in nothing but this one header."""
    info = tarfile.TarInfo(name)
    for attribute, value in changes.items():
        setattr(info, attribute, value)
    return info.tobuf(format, "utf-8", "surrogateescape") + END_OF_ARCHIVE


def test_walk_accepts_the_header_that_the_refused_ones_differ_from() -> None:
    assert [member.name for member in walk(io.BytesIO(other_tar(tarfile.USTAR_FORMAT, "a.jpg")))] == ["a.jpg"]


@pytest.mark.parametrize(
    "data",
    [
        other_tar(tarfile.USTAR_FORMAT, "a.JPG"),
        other_tar(tarfile.USTAR_FORMAT, "a"),
        other_tar(tarfile.USTAR_FORMAT, "a.jpg", mtime=1),
        other_tar(tarfile.USTAR_FORMAT, "a.jpg", mode=0o600),
        other_tar(tarfile.USTAR_FORMAT, "a.jpg", uname="root"),
        other_tar(tarfile.USTAR_FORMAT, "../a.jpg", mode=0o644),
        other_tar(tarfile.USTAR_FORMAT, "a.jpg", mode=0o644, type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        other_tar(tarfile.USTAR_FORMAT, "a", mode=0o644, type=tarfile.DIRTYPE),
        other_tar(tarfile.USTAR_FORMAT, "d/" * 60 + "a.jpg", mode=0o644),
        other_tar(tarfile.PAX_FORMAT, "ä.jpg", mode=0o644),
        other_tar(tarfile.GNU_FORMAT, "a" * 120 + ".jpg", mode=0o644),
        header("a.jpg", 0)[:124] + b"\x80" + b"\xff" * 11 + header("a.jpg", 0)[136:] + END_OF_ARCHIVE,
        header("a.jpg", 0)[:124] + b"-0000000001\0" + header("a.jpg", 0)[136:] + END_OF_ARCHIVE,
        header("a.jpg", 1) + b"x" + b"y" * 511 + END_OF_ARCHIVE,
        header("a.jpg", 513) + bytes(512),
        header("a.jpg", 0),
        header("a.jpg", 0) + bytes(512),
        header("a.jpg", 0) + END_OF_ARCHIVE + b"x",
        b"",
        b"\0",
    ],
)
def test_walk_refuses_what_the_writer_never_makes(data: bytes) -> None:
    with pytest.raises(TarDamage):
        list(walk(io.BytesIO(data)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_walk_of_any_bytes_is_damage_or_members_inside_the_file(data: st.DataObject) -> None:
    out = bytearray(header("000000000.jpg", 600) + bytes(1024) + header("000000001.cls", 1) + b"1".ljust(512, b"\0"))
    out += END_OF_ARCHIVE
    for _ in range(data.draw(st.integers(0, 6))):
        out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(out[: data.draw(st.integers(0, len(out)))])
    ends = []
    try:
        ends += [member.end + len(END_OF_ARCHIVE) for member in walk(io.BytesIO(cut))]
    except TarDamage as damage:
        ends.append(damage.offset)
    assert all(0 <= end <= len(cut) for end in ends)
