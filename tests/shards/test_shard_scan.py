"""One pass over a shard, against tarfile, hashlib and zlib."""

from __future__ import annotations

import hashlib
import random
import tarfile
import zlib
from pathlib import Path

import pytest

from shardforge.shards.one_pass import CHUNK
from shardforge.shards.scan import Scan, scan
from shardforge.shards.tar import END_OF_ARCHIVE, TarWriter, header

SAMPLES = {
    "a": {"jpg": random.Random(0).randbytes(3 * CHUNK + 17), "cls": b"12"},
    "b": {"jpg": b"", "cls": b"7", "txt": b"t" * 512},
    "c/d": {"jpg": b"x" * 513, "cls": b"9" * 40},
}


def write(path: Path) -> list[int]:
    """Writes the samples; returns where they start."""
    writer = TarWriter(path)
    starts = [writer.add(key, fields).start for key, fields in SAMPLES.items()]
    writer.finish()
    return starts


def look(path: Path, restarts: list[int]) -> Scan:
    with open(path, "rb") as file:
        return scan(file, image_field="jpg", class_field="cls", restarts=restarts)


@pytest.mark.parametrize("with_restarts", [True, False])
def test_everything_is_what_other_readers_find(tmp_path: Path, with_restarts: bool) -> None:
    path = tmp_path / "a.tar"
    starts = write(path)
    data = path.read_bytes()
    found = look(path, starts if with_restarts else [])
    assert (found.size, found.sha256, found.damage) == (len(data), hashlib.sha256(data).hexdigest(), ())
    with tarfile.open(path, "r:") as tar:
        expected = {member.name: (member.offset_data, member.size) for member in tar}
    assert {
        f"{sample.key}.{field}": (extent.offset, extent.size)
        for sample in found.samples
        for field, extent in sample.extents.items()
    } == expected
    assert [sample.start for sample in found.samples] == starts
    for sample, (key, fields) in zip(found.samples, SAMPLES.items(), strict=True):
        assert sample.key == key
        assert sample.crc32 == zlib.crc32(data[sample.start : sample.end])
        assert sample.sha256 == hashlib.sha256(fields["jpg"]).hexdigest()
        assert sample.class_text == fields["cls"][:32]


def test_damage_ends_the_look_only_without_restarts(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    starts = write(path)
    data = bytearray(path.read_bytes())
    data[starts[1]] ^= 1
    path.write_bytes(data)
    for restarts, keys in ((starts, ["a", "c/d"]), ([], ["a"])):
        found = look(path, restarts)
        assert [sample.key for sample in found.samples] == keys
        assert [damage.offset for damage in found.damage] == [starts[1]]
        assert (found.size, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_a_hole_of_zeros_is_no_end_while_samples_are_promised(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    starts = write(path)
    data = bytearray(path.read_bytes())
    data[starts[1] : starts[1] + 1024] = bytes(1024)
    path.write_bytes(data)
    found = look(path, starts)
    assert [sample.key for sample in found.samples] == ["a", "c/d"]
    assert [damage.offset for damage in found.damage] == [starts[1]]


def test_what_follows_the_end_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write(path)
    end = path.stat().st_size
    with open(path, "ab") as file:
        file.write(bytes(4096))
    (damage,) = look(path, []).damage
    assert (damage.offset, damage.what) == (end, "4,096 bytes after the end of the archive")


@pytest.mark.parametrize("restarts", [[10**15], [-5, 0, 0, 1, 511, 513], list(range(3000))])
def test_promises_that_lie_do_not_keep_the_scan_from_ending(tmp_path: Path, restarts: list[int]) -> None:
    path = tmp_path / "a.tar"
    for data in (b"", bytes(700), b"\xff" * 3000, bytes(512) + END_OF_ARCHIVE):
        path.write_bytes(data)
        found = look(path, restarts)
        assert (found.size, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())


def test_damage_to_padding_is_placed_at_the_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write(path)
    found = look(path, [])
    extent = found.samples[2].extents["jpg"]
    data = bytearray(path.read_bytes())
    data[extent.offset + extent.size] = 1
    path.write_bytes(data)
    (damage,) = look(path, []).damage
    assert damage.offset == extent.offset + extent.size


@pytest.mark.parametrize("names", [("a.jpg", "a.cls"), ("a.cls", "a.cls")])
def test_members_out_of_order_or_twice_are_damage(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(b"".join(header(name, 0) for name in names) + END_OF_ARCHIVE)
    (damage,) = look(path, []).damage
    assert (damage.offset, damage.what) == (512, f"{names[1]!r} stands out of order, or twice")
