"""``verify``: sound datasets pass, and whatever is broken is named."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.errors import StorageError
from shardforge.shards import index, metadata
from shardforge.shards.damage import LINES, Damage
from shardforge.shards.manifest import LabelKind, Manifest, SplitInfo
from shardforge.shards.tar import END_OF_ARCHIVE, TarWriter
from shardforge.shards.verify import verify
from tests.datasets import make_dataset

FILES = (
    "dataset.json",
    "train-000000.parquet",
    "train-000000.tar",
    "train-000001.parquet",
    "train-000001.tar",
    "train.index.arrow",
    "val-000000.parquet",
    "val-000000.tar",
    "val.index.arrow",
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with two splits, optional sidecars and failed items."""
    root = tmp_path_factory.mktemp("whole")
    make_dataset(
        root, {"train": [8, 7], "val": [5]}, sidecars=("txt", "mask.png"), optional=("txt",), failed_per_shard=2
    )
    return root


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """A dataset that a test may break."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))


@contextmanager
def bytes_of(path: Path, data: bytes) -> Iterator[None]:
    """The file holds other bytes for a while."""
    good = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(good)


def damage_of(root: Path) -> tuple[Damage, ...]:
    return verify(root).damage


def sample_ranges(tar: Path) -> dict[str, range]:
    """key → its bytes, headers and padding included, as Python's tarfile has it."""
    found: dict[str, range] = {}
    with tarfile.open(tar, "r:") as file:
        for member in file:
            key = member.name.partition(".")[0]
            end = member.offset_data + -(-member.size // 512) * 512
            found[key] = range(found[key].start if key in found else member.offset, end)
    return found


@pytest.mark.parametrize("kind", ["class", "multi", "number", "none"])
@pytest.mark.parametrize(("failed", "format", "channels"), [(0, "png", 3), (3, "npy", 1), (1, "webp", 3)])
def test_a_sound_dataset_has_no_damage(
    tmp_path: Path, kind: LabelKind, failed: int, format: str, channels: int
) -> None:
    make_dataset(
        tmp_path,
        {"train": [4, 3], "val": [2]},
        label_kind=kind,
        label_size=2 if kind == "number" else 1,
        failed_per_shard=failed,
        format=format,
        channels=channels,
        sidecars=("json",),
    )
    found = verify(tmp_path)
    assert found.damage == ()
    assert found.notes == ()
    assert found.sound
    assert (found.splits, found.shards, found.samples, found.items) == (2, 3, 9, 9 + 3 * failed)
    assert found.bytes == sum(path.stat().st_size for path in tmp_path.iterdir())


def test_a_shard_of_failures_alone_is_sound(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [0, 2]}, failed_per_shard=2)
    assert damage_of(tmp_path) == ()


def test_progress_names_every_shard_and_index_file_once(whole: Path) -> None:
    seen: list[str] = []
    verify(whole, progress=seen.append)
    assert sorted(seen) == sorted(set(FILES) - {"dataset.json"})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_flipped_bit_is_blamed_on_its_file_and_sample(whole: Path, data: st.DataObject) -> None:
    path = whole / data.draw(st.sampled_from(FILES))
    changed = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] ^= 1 << data.draw(st.integers(0, 7))
    ranges = sample_ranges(path) if path.suffix == ".tar" else {}
    with bytes_of(path, bytes(changed)):
        damage = damage_of(whole)
    blamed = {entry.sample for entry in damage if entry.file == path.name}
    assert blamed
    assert blamed == {next((key for key, span in ranges.items() if place in span), None)}
    if path.name != "dataset.json":
        assert {entry.file for entry in damage} == {path.name}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_tar_cut_anywhere_names_the_samples_that_are_lost(whole: Path, data: st.DataObject) -> None:
    path = whole / data.draw(st.sampled_from([name for name in FILES if name.endswith(".tar")]))
    good, ranges = path.read_bytes(), sample_ranges(path)
    length = data.draw(st.integers(0, len(good) - 1))
    with bytes_of(path, good[:length]):
        damage = damage_of(whole)
    assert {entry.file for entry in damage} == {path.name}
    lost = {key for key, span in ranges.items() if span.stop > length}
    assert {entry.sample for entry in damage} - {None} == lost
    assert any(f"{length:,} bytes where {len(good):,} belong" in entry.what for entry in damage)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_tar_with_bytes_moved_in_is_damage_that_stays_inside(whole: Path, data: st.DataObject) -> None:
    path = whole / "train-000000.tar"
    good, ranges = path.read_bytes(), sample_ranges(path)
    start = data.draw(st.integers(0, len(good) - 1))
    piece = data.draw(st.sampled_from([bytes(512), bytes(4096), b"x", good[1024:3072], b"\xff" * 513]))
    changed = good[:start] + piece + good[start + len(piece) :]
    if changed == good:
        return
    with bytes_of(path, changed):
        damage = damage_of(whole)
    touched = {key for key, span in ranges.items() if span.start < start + len(piece) and start < span.stop}
    assert {entry.file for entry in damage} == {path.name}
    assert {entry.sample for entry in damage} - {None} <= touched


@pytest.mark.parametrize("name", FILES)
def test_a_deleted_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    damage = damage_of(copy)
    assert {entry.file for entry in damage} == {name}
    assert damage[0].what.startswith("is missing")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_a_folder_or_pipe_instead_of_a_file_is_named(copy: Path, name: str, make: Callable[[Path], None]) -> None:
    (copy / name).unlink()
    make(copy / name)
    if name == "dataset.json":
        with pytest.raises(StorageError, match=r"dataset\.json: cannot be read"):
            verify(copy)
    else:
        assert damage_of(copy) == (Damage(name, None, "cannot be read (not a regular file)"),)


@pytest.mark.parametrize("suffix", [".tar", ".parquet", ".index.arrow"])
def test_swapped_files_are_recognised(copy: Path, suffix: str) -> None:
    names = ("train", "val") if suffix == ".index.arrow" else ("train-000000", "train-000001")
    a, b = (f"{name}{suffix}" for name in names)
    (copy / a).rename(copy / "aside")
    (copy / b).rename(copy / a)
    (copy / "aside").rename(copy / b)
    assert damage_of(copy) == (
        Damage(a, None, f"holds the bytes of {b}"),
        Damage(b, None, f"holds the bytes of {a}"),
    )


def test_a_broken_parquet_does_not_hide_a_broken_tar(copy: Path) -> None:
    for name in ("train-000000.parquet", "train-000000.tar", "val-000000.tar"):
        data = bytearray((copy / name).read_bytes())
        data[600] ^= 1
        (copy / name).write_bytes(data)
    damage = damage_of(copy)
    assert [entry.file for entry in damage] == ["train-000000.parquet", "train-000000.tar", "val-000000.tar"]
    assert damage[1].sample is None
    assert damage[2].sample is not None


def test_extra_shards_are_damage_and_foreign_files_are_notes(copy: Path) -> None:
    shutil.copy(copy / "train-000001.tar", copy / "train-000002.tar")
    (copy / "test.index.arrow").write_bytes(b"")
    (copy / ".staging").mkdir()
    (copy / "notes\x1b[2J.txt").write_text("mine")
    for own in ("README.md", "build.json"):
        (copy / own).write_text("")
    found = verify(copy)
    assert found.damage == (
        Damage("test.index.arrow", None, "is not in the manifest"),
        Damage("train-000002.tar", None, "is not in the manifest"),
    )
    assert found.notes == (".staging: left over from a build", "notes\x1b[2J.txt: does not belong to the dataset")


def test_what_is_no_finished_dataset_says_so(tmp_path: Path) -> None:
    for place, words in ((tmp_path / "absent", "cannot be listed"), (tmp_path, "not a shardforge dataset")):
        with pytest.raises(StorageError, match=words):
            verify(place)
    (tmp_path / ".staging").mkdir()
    (tmp_path / "train-000000.tar").write_bytes(END_OF_ARCHIVE)
    with pytest.raises(StorageError, match="unfinished"):
        verify(tmp_path)


# From here on every checksum is right: only what the files say contradicts itself.


def resign(root: Path, change: Callable[[Manifest], Manifest] = lambda manifest: manifest) -> None:
    """Gives a manifest the checksums of the files as they are now."""

    def digest(name: str) -> str:
        return hashlib.sha256((root / name).read_bytes()).hexdigest()

    manifest = Manifest.read(root)
    splits = {}
    for name, split in manifest.splits.items():
        shards = tuple(
            replace(
                shard,
                sha256=digest(f"{shard.name}.tar"),
                parquet_sha256=digest(f"{shard.name}.parquet"),
                bytes=(root / f"{shard.name}.tar").stat().st_size,
            )
            for shard in split.shards
        )
        size = sum(shard.bytes for shard in shards)
        splits[name] = replace(split, shards=shards, bytes=size, index_sha256=digest(f"{name}.index.arrow"))
    change(replace(manifest, splits=splits).with_fingerprint()).write(root / "dataset.json")


def edit(root: Path, shard: str, row: int, values: Mapping[str, Any]) -> None:
    """Writes other values into a row and signs the dataset anew, its index included."""
    path = root / f"{shard}.parquet"
    table = pq.read_table(path)
    for name, value in values.items():
        column = table.column(name).to_pylist()
        column[row] = value
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), pa.array(column, table.schema.field(name).type))
    metadata.write(path, table)
    resign(root)


def reindex(root: Path, split: str, change: Callable[[pa.Table], pa.Table] = lambda table: table) -> None:
    """Writes a split's index anew from its parquet files."""
    manifest = Manifest.read(root)
    target = index.schema(tuple(manifest.fields), manifest.label)
    names = [shard.name for shard in manifest.splits[split].shards]
    parts = [index.rows(i, pq.read_table(root / f"{name}.parquet"), target) for i, name in enumerate(names)]
    index.write(root / f"{split}.index.arrow", [change(pa.concat_tables(parts))], target)
    resign(root)


def test_a_dataset_signed_anew_is_sound(copy: Path) -> None:
    reindex(copy, "train")
    assert damage_of(copy) == ()


# Items 0–9 make train-000000; items 2 and 7 failed (see make_dataset).
@pytest.mark.parametrize(
    ("row", "values", "words"),
    [
        (3, {"position": 4}, "position is 4 where 3 belongs"),
        (3, {"shard": "train-000001"}, "shard is 'train-000001' where 'train-000000' belongs"),
        (3, {"split": "val"}, "split is 'val' where 'train' belongs"),
        (3, {"status": "fine"}, "unknown status 'fine'"),
        (2, {"reason": "bad luck"}, "unknown reason 'bad luck'"),
        (2, {"reason": None}, "failed without a reason"),
        (2, {"jpg_offset": 512}, "not a success, but has jpg_offset"),
        (3, {"flags": ["odd"]}, "unknown flag 'odd'"),
        (3, {"reason": "truncated"}, "a success with the reason 'truncated'"),
        (3, {"key": "a.b"}, "illegal key 'a.b'"),
        (3, {"sha256": None}, "a success without sha256"),
        (3, {"jpg_offset": None, "jpg_size": None}, "without the required field jpg"),
        (4, {"txt_size": None}, "txt has only one of offset and size"),
        (3, {"jpg_offset": -512}, "impossible place"),
        (3, {"bytes": 1}, "bytes is 1, the size of the main payload"),
        (3, {"label": 2}, "label 2 ('dog') is none of this dataset's labels"),
        (3, {"label_name": "yak"}, "label 3 ('yak') is none of this dataset's labels"),
        (3, {"label": None}, "label None ('dog') is none of this dataset's labels"),
        (3, {"label": 2, "label_name": "cat"}, "its cls holds b'3' where the label is 2"),
        (3, {"sha256": "0" * 64}, "sha256 of its main payload"),
        (3, {"sample_crc32": 0}, "crc32 of its bytes"),
        (3, {"key": "000000099"}, "is missing from the tar"),
        (4, {"txt_offset": None, "txt_size": None}, "its txt is in the tar, but the row does not tell of it"),
    ],
)
def test_rows_that_lie_under_right_checksums_are_named(
    copy: Path, row: int, values: dict[str, Any], words: str
) -> None:
    edit(copy, "train-000000", row, values)
    found = [entry for entry in damage_of(copy) if entry.file == "train-000000.parquet"]
    key = values.get("key", f"{row:09d}")
    assert any(words in entry.what and entry.sample == key for entry in found), found


def test_extents_that_lie_are_named(copy: Path) -> None:
    row = pq.read_table(copy / "val-000000.parquet").to_pylist()[-1]
    edit(copy, "val-000000", row["position"], {"jpg_offset": row["jpg_offset"] + 512})
    words = f"its jpg is {row['jpg_size']:,} bytes at {row['jpg_offset']:,}, not "
    assert any(words in entry.what and entry.sample == row["key"] for entry in damage_of(copy))


def test_a_key_used_twice_is_named_with_both_places(copy: Path) -> None:
    edit(copy, "val-000000", 1, {"key": "000000002"})
    found = [entry for entry in damage_of(copy) if entry.sample == "000000002"]
    assert (
        Damage("val-000000.parquet", "000000002", "its key is also that of an item in train-000000.parquet") in found
    )


def test_other_columns_are_named(copy: Path) -> None:
    path = copy / "val-000000.parquet"
    table = pq.read_table(path)
    metadata.write(path, table.drop_columns(["sha256"]))
    resign(copy)
    words = "its columns are not those of this dataset (source_bytes: int64 where sha256: string belongs)"
    assert damage_of(copy) == (Damage(path.name, None, words),)
    metadata.write(path, table.drop_columns(["age"]))
    resign(copy)
    assert damage_of(copy) == (
        Damage("val-000000.parquet", None, "its further columns are not those of train-000000.parquet"),
    )


def test_several_row_groups_are_named(copy: Path) -> None:
    path = copy / "val-000000.parquet"
    pq.write_table(pq.read_table(path), path, row_group_size=3)
    resign(copy)
    assert damage_of(copy) == (Damage("val-000000.parquet", None, "has 3 row groups where one belongs"),)


def test_rows_in_another_order_than_the_tar_are_named(copy: Path) -> None:
    path = copy / "val-000000.parquet"
    table = pq.read_table(path)
    good = [row["position"] for row in table.to_pylist() if row["status"] == "success"]
    order = list(range(table.num_rows))
    order[good[1]], order[good[2]] = good[2], good[1]
    place = table.schema.get_field_index("position")
    positions = table.column("position")
    metadata.write(path, table.take(order).set_column(place, table.schema.field("position"), positions))
    reindex(copy, "val")
    (entry,) = damage_of(copy)
    assert (entry.file, entry.sample) == (path.name, table["key"][good[1]].as_py())
    assert "its bytes do not follow those of the row before" in entry.what


def test_more_rows_than_the_manifest_has_items_are_not_read(copy: Path) -> None:
    resign(copy, lambda manifest: change_split(manifest, samples=5, failed=4))
    words = "has 10 rows where the whole split has 9 items"
    assert Damage("train-000000.parquet", None, words) in damage_of(copy)


def change_split(manifest: Manifest, **changes: Any) -> Manifest:
    splits = {**manifest.splits, "train": replace(manifest.splits["train"], **changes)}
    return replace(manifest, splits=splits).with_fingerprint()


def rename_shard(manifest: Manifest) -> Manifest:
    shards = manifest.splits["train"].shards
    return change_split(manifest, shards=(shards[0], replace(shards[1], name="train-000002")))


def shift_samples(manifest: Manifest) -> Manifest:
    a, b = manifest.splits["train"].shards
    return change_split(manifest, shards=(replace(a, samples=a.samples + 1), replace(b, samples=b.samples - 1)))


def spoil_stats(manifest: Manifest) -> Manifest:
    stats = manifest.splits["train"].stats
    assert stats is not None
    return change_split(manifest, stats=replace(stats, mean=(0.5, 0.5, 0.5)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: change_split(m, failed=5), "split 'train': says 5 failed where 4 rows are"),
        (lambda m: change_split(m, failed=3, filtered=1), "split 'train': says 1 filtered where 0 rows are"),
        (lambda m: change_split(m, samples=16, failed=3), "split 'train': says 16 samples, its shards together 15"),
        (lambda m: change_split(m, bytes=1), "split 'train': says 1 bytes, its shards together"),
        (lambda m: replace(m, inputs=replace(m.inputs, items=27)), "the splits account for 26 of 27 planned items"),
        (lambda m: replace(m, fingerprint="0" * 64), "the fingerprint is not that of the shards it lists"),
        (lambda m: replace(m, classes={**m.classes, "emu": 7}), "the class ids are not 0, 1, 2"),
        (rename_shard, "split 'train': lists 'train-000002' where train-000001 belongs"),
        (shift_samples, "says 9 samples for train-000000 where 8 rows are"),
        (spoil_stats, "split 'train': mean and std are not those of the histogram"),
        (lambda m: replace(m, splits={**m.splits, "../x": m.splits["val"]}), "split '../x': not a legal name"),
    ],
)
def test_a_manifest_that_lies_is_named(copy: Path, change: Callable[[Manifest], Manifest], words: str) -> None:
    resign(copy, change)
    assert any(words in entry.what for entry in damage_of(copy) if entry.file == "dataset.json"), damage_of(copy)


def test_an_edited_count_is_named_though_the_checksum_is_wrong_already(copy: Path) -> None:
    data = (copy / "dataset.json").read_bytes()
    changed = data.replace(b'"failed": 4', b'"failed": 3')
    assert changed != data
    (copy / "dataset.json").write_bytes(changed)
    assert [entry.what for entry in damage_of(copy) if entry.file == "dataset.json"] == [
        "its checksum does not match: the file was changed or damaged",
        "the splits account for 25 of 26 planned items",
        "split 'train': says 3 failed where 4 rows are",
    ]


def test_a_wrong_digest_in_a_damaged_manifest_is_not_blamed_on_the_tar(copy: Path) -> None:
    digest = Manifest.read(copy).splits["val"].shards[0].sha256.encode()
    data = (copy / "dataset.json").read_bytes()
    (copy / "dataset.json").write_bytes(data.replace(digest, b"0" * 64))
    damage = damage_of(copy)
    assert {entry.file for entry in damage} == {"dataset.json"}
    assert any("sha256 of val-000000.tar" in entry.what for entry in damage)


@pytest.mark.parametrize(
    ("name", "value"),
    [("key", "zzz"), ("position", 9), ("label", 0), ("jpg_offset", 1), ("txt_size", 7), ("shard", 1)],
)
def test_an_index_row_that_lies_is_named(copy: Path, name: str, value: Any) -> None:
    def change(table: pa.Table) -> pa.Table:
        column = table.column(name).to_pylist()
        column[5] = value
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), pa.array(column, table.schema.field(name).type))

    reindex(copy, "train", change)
    key = (
        pq.read_table(copy / "train-000000.parquet").filter(pa.compute.field("status") == "success")["key"][5].as_py()
    )
    (entry,) = damage_of(copy)
    assert (entry.file, entry.sample) == ("train.index.arrow", key)
    assert entry.what.startswith(f"{name} is {value!r} where the parquet says ")


def test_an_index_of_another_length_or_order_is_named(copy: Path) -> None:
    reindex(copy, "train", lambda table: table.slice(0, 14))
    assert damage_of(copy) == (Damage("train.index.arrow", None, "lists 14 samples where the split has 15"),)
    reindex(copy, "train", lambda table: table.take(list(range(14, -1, -1))))
    assert {entry.file for entry in damage_of(copy)} == {"train.index.arrow"}


def test_a_tar_of_another_writer_is_named(copy: Path) -> None:
    path = copy / "val-000000.tar"
    with tarfile.open(path, "r:") as tar:
        members = [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]
    samples: dict[str, dict[str, bytes]] = {}
    for name, data in members:
        samples.setdefault(name.partition(".")[0], {})[name.partition(".")[2]] = data
    writer = TarWriter(path)
    for key in sorted(samples, reverse=True):
        writer.add(key, samples[key])
    writer.finish()
    resign(copy)
    damage = damage_of(copy)
    assert {entry.sample for entry in damage} >= set(samples) - {sorted(samples)[2]}
    first = members[0][0].partition(".")[0]
    writer = TarWriter(path)
    for name, data in [*members, (f"{first}.xyz", b"late")]:
        writer.add(name.partition(".")[0], {name.partition(".")[2]: data})
    writer.finish()
    resign(copy)
    assert any("do not stand together" in entry.what for entry in damage_of(copy) if entry.file == path.name)


def test_one_root_cause_does_not_print_thousands_of_lines(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [60]}, size=(8, 8))
    tar = tmp_path / "train-000000.tar"
    tar.write_bytes(tar.read_bytes()[:1024])
    damage = damage_of(tmp_path)
    # The size, 60 lost samples: LINES of them are told, the others counted.
    assert len(damage) == LINES + 1
    assert damage[-1] == Damage(tar.name, None, f"and {61 - LINES} more like these")


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"ARROW1\0\0", b"PAR1" + bytes(64) + b"PAR1", b"\xff" * 5000, bytes(2048)]
)
def test_nonsense_under_a_right_checksum_is_damage(copy: Path, name: str, data: bytes) -> None:
    (copy / name).write_bytes(data)
    resign(copy)
    damage = damage_of(copy)
    assert name in {entry.file for entry in damage} or name.replace(".tar", ".parquet") in {e.file for e in damage}


def test_shard_names_that_lead_elsewhere_are_never_opened(copy: Path) -> None:
    outside = copy.parent / "outside-000000.tar"
    outside.write_bytes(b"secret")

    def change(manifest: Manifest) -> Manifest:
        shards = manifest.splits["train"].shards
        return change_split(manifest, shards=(replace(shards[0], name="../outside-000000"), shards[1]))

    resign(copy, change)
    seen: list[str] = []
    found = verify(copy, progress=seen.append)
    assert not any("outside" in name for name in seen)
    assert any("'../outside-000000'" in entry.what for entry in found.damage if entry.file == "dataset.json")


def test_a_manifest_without_an_image_field_is_named(copy: Path) -> None:
    def change(manifest: Manifest) -> Manifest:
        return replace(manifest, fields={name: info for name, info in manifest.fields.items() if name != "jpg"})

    resign(copy, change)
    assert any("0 image fields" in entry.what for entry in damage_of(copy))


def test_an_empty_dataset_is_sound(tmp_path: Path) -> None:
    manifest = make_dataset(tmp_path, {"train": []})
    assert isinstance(manifest.splits["train"], SplitInfo)
    assert damage_of(tmp_path) == ()
