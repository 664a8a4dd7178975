"""Identical files: found by bytes alone, in one split, dropped but one when asked; and pictures that are equal."""

from __future__ import annotations

import csv
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shardforge
from shardforge.compile.duplicates import Duplicates, find_duplicates, joined_groups
from shardforge.compile.planned_item import PlannedItem, SampleSettings
from shardforge.compile.progress import Silent
from shardforge.compile.sample import make_sample
from shardforge.compile.split import hash_split
from shardforge.errors import TooManyFailuresError, UsageError
from shardforge.recipe import load_recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import FieldInfo, LabelInfo
from shardforge.shards.verify import verify
from shardforge.sources.item import Item, SourceFile
from tests.built import rows
from tests.pictures import class_folders, digest_tree, run, write_picture


def make_items(root: Path, contents: dict[str, bytes]) -> list[Item]:
    items = []
    for name, content in sorted(contents.items()):
        (root / name).write_bytes(content)
        items.append(Item(name, {"image": SourceFile(name, len(content), 0)}))
    return items


def test_only_files_of_one_size_are_read_and_only_equal_bytes_are_identical(tmp_path: Path) -> None:
    items = make_items(
        tmp_path, {"a": b"12", "b": b"34", "c": b"12", "d": b"123", "e": b"12", "f": b"1234", "g": b"4321"}
    )
    # Never opened: it would hang.
    (tmp_path / "d").unlink()
    os.mkfifo(tmp_path / "d")
    found = find_duplicates(tmp_path, items, 3, Silent())
    assert found.sets == ((0, 2, 4),)
    assert sorted(found.hashes) == [0, 1, 2, 4]
    assert found.digest("x") != Duplicates().digest("x") == "x"


def test_a_file_that_cannot_be_read_and_a_row_with_a_problem_are_nobodys_duplicates(tmp_path: Path) -> None:
    items = make_items(tmp_path, {"a": b"12", "b": b"12", "c": b"12"})
    (tmp_path / "b").unlink()
    items[2] = Item("c", items[2].files, problem=Reason.MISSING_LABEL)
    assert find_duplicates(tmp_path, items, 10, Silent()).sets == ()


def test_rows_that_name_one_file_are_identical(tmp_path: Path) -> None:
    (item,) = make_items(tmp_path, {"a": b"12"})
    assert find_duplicates(tmp_path, [item, item], 10, Silent()).sets == ((0, 1),)


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=14),
    st.lists(st.integers(0, 7), min_size=14, max_size=14),
)
@settings(max_examples=150, deadline=None)
def test_groups_join_through_identical_files_and_no_further(groups: list[int | None], contents: list[int]) -> None:
    items = [Item(f"{i:02d}", {}, group=None if g is None else f"g{g}") for i, g in enumerate(groups)]
    sets: dict[int, list[int]] = {}
    for i in range(len(items)):
        sets.setdefault(contents[i], []).append(i)
    found = joined_groups(items, Duplicates({}, tuple(tuple(s) for s in sets.values() if len(s) > 1)))
    # The closure, by walking until nothing changes.
    for start in range(len(items)):
        reached, size = {start}, 0
        while len(reached) > size:
            size = len(reached)
            content = {contents[i] for i in reached}
            group = {groups[i] for i in reached} - {None}
            reached |= {i for i in range(len(items)) if contents[i] in content or groups[i] in group}
        assert {i for i in range(len(items)) if found[i] == found[start]} == reached
        users = sorted(f"group\0g{groups[i]}" for i in reached if groups[i] is not None)
        assert found[start] == (users[0] if users else items[min(reached)].source)


def test_a_group_that_loose_copies_join_stays_in_its_split() -> None:
    item, loose = Item("b", {}, group="p7"), Item("a", {})
    (alone,), joined = joined_groups([item], Duplicates()), joined_groups([loose, item], Duplicates({}, ((0, 1),)))
    assert joined == [alone, alone]


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve pictures, ten of them twice, one copy under another label; one broken file thrice."""
    raw = class_folders(tmp_path_factory.mktemp("raw"), {"a": 6, "b": 6})
    for i in range(5):
        for label in "ab":
            shutil.copy(raw / label / f"{i:04d}.png", raw / label / f"copy{i}.png")
    (raw / "a" / "copy0.png").rename(raw / "b" / "other.png")
    for name in ("a/x.png", "a/y.png", "b/z.png"):
        (raw / name).write_bytes(b"not an image")
    return raw


SPLIT = ("--split", "train=0.5,val=0.5", "--size", "24", "--shard-samples", "8")


def test_without_dedup_copies_part_and_the_report_says_so(raw: Path, tmp_path: Path) -> None:
    result = run("build", raw, tmp_path / "out", *SPLIT, "--json")
    report = json.loads(result.stdout)
    found = rows(tmp_path / "out")
    by_hash: dict[str, set[str]] = {}
    for row in found.values():
        if row["status"] == "success":
            by_hash.setdefault(row["pixels_hash"], set()).add(row["split"])
    parted = sum(len(splits) > 1 for splits in by_hash.values())
    assert parted > 0
    assert len(by_hash) == 12
    (warning,) = (line for line in report["warnings"] if "stored pixel" in line)
    assert warning.startswith(f"{parted} pictures lie in more than one split")
    assert f"warning: {warning}" in result.stderr
    assert warning in json.loads((tmp_path / "out" / "build.json").read_text())["warnings"]
    named = warning.split(": ", 1)[1].split("; ")[0]
    one, two = (name.split(" (")[0] for name in named.split(" = "))
    assert (raw / one).read_bytes() == (raw / two.strip()).read_bytes()
    assert found[one]["split"] != found[two]["split"]


def test_equal_pixels_are_found_whatever_the_files_are(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"train/a": 3, "val/a": 2})
    write_picture(raw / "train" / "a" / "same.bmp", 77)
    write_picture(raw / "val" / "a" / "same.png", 77)
    report = shardforge.build(raw, tmp_path / "out", size=24, dedup="bytes", quiet=True)
    (warning,) = report.warnings
    assert warning.startswith("1 picture lies in more than one split")
    assert "train/a/same.bmp (train) = val/a/same.png (val)" in warning


def test_identical_files_stay_in_one_split(raw: Path, tmp_path: Path) -> None:
    arguments = (*SPLIT, "--dedup", "bytes")
    result = run("build", raw, tmp_path / "out", *arguments, "--workers", "2", "--json")
    report = json.loads(result.stdout)
    assert report["samples"] == 22
    found = rows(tmp_path / "out")
    splits: dict[bytes, set[str]] = {}
    for source, row in found.items():
        splits.setdefault((raw / source).read_bytes(), set()).add(row["split"])
    assert {len(names) for names in splits.values()} == {1}
    # Whoever has no copy stays where it is without dedup.
    half = Decimal("0.5")
    assert found["a/0005.png"]["split"] == hash_split("a/0005.png", 0, {"train": half, "val": half})
    assert "dedup: 23 items in 11 sets of identical files; all kept, each set in one split" in report["notes"]
    told = "2 sets of identical files whose labels contradict each other; for one, a/0000.png is 'a', b/other.png 'b'"
    assert [told] == [line for line in report["warnings"] if "contradict" in line]
    assert not any("stored pixel" in line for line in report["warnings"])
    assert verify(tmp_path / "out").damage == ()
    one = run("build", raw, tmp_path / "one", *arguments, "--workers", "1", "--quiet")
    assert one.returncode == 1
    assert digest_tree(tmp_path / "one") == digest_tree(tmp_path / "out")


def test_all_but_the_first_are_filtered_and_name_the_one_kept(raw: Path, tmp_path: Path) -> None:
    report = shardforge.build(raw, tmp_path / "out", dedup="bytes", duplicates="first", size=24, quiet=True)
    assert (report.samples, report.failed) == (12, 1)
    assert report.filtered_reasons == {"duplicate": 12}
    found = rows(tmp_path / "out")
    keys = {row["key"]: source for source, row in found.items()}
    for source, row in found.items():
        if row["reason"] == "duplicate":
            kept = keys[row["duplicate_of"]]
            assert kept < source
            assert (raw / kept).read_bytes() == (raw / source).read_bytes()
            assert found[kept]["reason"] != "duplicate"
        else:
            assert row["duplicate_of"] is None
    assert {source for source, row in found.items() if row["status"] == "success"} == {
        f"{label}/000{i}.png" for label in "ab" for i in range(6)
    }
    assert sum(row for counts in report.balance.values() for row in counts.values()) == 13
    assert verify(tmp_path / "out").damage == ()
    again = shardforge.build(raw, tmp_path / "out", dedup="bytes", duplicates="first", size=24, quiet=True)
    assert again.status == "up to date"


def test_the_copy_that_is_kept_is_one_that_can_be(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(3):
        write_picture(raw / f"{i}.png", 0)
    write_picture(raw / "3.png", 1)
    table = tmp_path / "items.csv"
    table.write_text("path,id,n\n0.png,no.dots,1\n1.png,k,0\n2.png,k,1\n3.png,m,1\n")
    report = shardforge.build(
        raw,
        tmp_path / "out",
        table=table,
        keys="column:id",
        where="n = 1",
        dedup="bytes",
        duplicates="first",
        quiet=True,
    )
    found = rows(tmp_path / "out")
    assert [found[f"{i}.png"]["reason"] for i in range(4)] == ["duplicate", "filtered_where", None, None]
    assert (found["0.png"]["duplicate_of"], report.samples) == ("k", 2)
    assert verify(tmp_path / "out").damage == ()


@pytest.mark.parametrize(
    ("option", "bad", "good"),
    [
        ({"boxes": "marks:xywh"}, "[[1, 2, 0, 5]]", "[[1, 2, 3, 5]]"),  # no area
        ({"boxes": "marks:xyxy,relative"}, "[[0.5, 0.1, 0.2, 0.3]]", "[[0.2, 0.1, 0.5, 0.3]]"),  # right of its right
        ({"boxes": "marks:xywh"}, "[[1, 2, 3]]", "[[1, 2, 3, 5]]"),
        ({"boxes": "marks:xywh"}, "[[1, 2, 3, 1e999]]", "[]"),
        ({"keypoints": "marks:xyv"}, "[[1, 2, 7]]", "[[1, 2, 1]]"),
        ({"keypoints": "marks:xy"}, "nonsense", ""),
    ],
)
def test_the_copy_that_is_kept_has_boxes_and_points_that_can_be_used(
    tmp_path: Path, option: dict[str, str], bad: str, good: str
) -> None:
    raw = tmp_path / "raw"
    write_picture(raw / "0.png", 0)
    shutil.copy(raw / "0.png", raw / "1.png")
    table = tmp_path / "items.csv"
    with open(table, "w", newline="") as file:
        csv.writer(file).writerows([["path", "marks"], ["0.png", bad], ["1.png", good]])
    report = shardforge.build(
        raw, tmp_path / "out", table=table, dedup="bytes", duplicates="first", size=24, quiet=True, **option
    )  # type: ignore[arg-type]
    found = rows(tmp_path / "out")
    assert (found["0.png"]["reason"], found["1.png"]["status"]) == ("duplicate", "success")
    assert (report.samples, report.failed) == (1, 0)


def test_files_that_change_between_comparing_and_building_are_noticed(raw: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(raw, tmp_path / "raw"))
    options = {"dedup": "bytes", "duplicates": "first", "size": 24, "quiet": True}
    shardforge.build(copy, tmp_path / "out", **options)  # type: ignore[arg-type]
    # A dropped copy, never read for the dataset itself, becomes a picture of its own; size and time stay.
    path = copy / "b" / "copy1.png"
    before, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UsageError, match="identical files differ"):
        shardforge.build(copy, tmp_path / "out", **options)  # type: ignore[arg-type]


def test_a_source_whose_own_splits_share_a_file_is_pointed_out(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"train/a": 2, "val/a": 2})
    shutil.copy(raw / "train" / "a" / "0000.png", raw / "val" / "a" / "again.png")
    report = shardforge.build(raw, tmp_path / "out", dedup="bytes", size=24, quiet=True)
    told = "1 set of identical files whose splits differ; for one, train/a/0000.png is 'train', val/a/again.png 'val'"
    assert report.warnings[0] == told
    assert report.warnings[1].startswith("1 picture lies in more than one split")


def test_first_needs_dedup(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="duplicates: first needs dedup bytes"):
        shardforge.build(tmp_path, tmp_path / "out", duplicates="first", quiet=True)


def test_different_pictures_in_two_splits_raise_no_warning(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"train/a": 3, "val/a": 3})
    assert shardforge.build(raw, tmp_path / "out", size=24, quiet=True).warnings == ()


def test_a_file_with_other_bytes_than_were_compared_fails(tmp_path: Path) -> None:
    path = write_picture(tmp_path / "a.png", 1)
    recipe = load_recipe(None, {"dedup": "bytes"})
    planned = SampleSettings(recipe, {"jpg": FieldInfo("image")}, LabelInfo("none"), "jpg")
    item = PlannedItem("k", "a.png", {"image": (b"a.png", path.stat().st_size)}, planned_sha256="0" * 64)
    assert make_sample(item, planned, tmp_path).outcome.reason == "changed"


def test_a_stopped_build_with_everything_on_ends_in_the_same_bytes(tmp_path: Path) -> None:
    raw, lines = tmp_path / "raw", []
    for i in range(40):
        path = write_picture(raw / f"{i:02d}.png", i % 30, width=40 + 4 * (i % 5))
        if i % 8 == 3:
            path.write_bytes(b"broken %02d" % i)
        lines.append(f'{{"path": "{path.name}", "n": {i}, "bbox": [[1, 2, 30, 20], [{i}, 0, 5, 5]]}}')
    table = tmp_path / "items.jsonl"
    table.write_text("\n".join(lines))
    options = {
        "table": table, "boxes": "bbox:xywh", "where": "n <> 7", "max_side": 52, "dedup": "bytes",
        "duplicates": "first", "split": "train=0.6,val=0.4", "size": 24, "shard_samples": 5, "workers": 1,
        "quiet": True,
    }  # fmt: skip
    with pytest.raises(TooManyFailuresError):
        shardforge.build(raw, tmp_path / "out", max_errors=1, **options)  # type: ignore[arg-type]
    report = shardforge.build(raw, tmp_path / "out", max_errors=9, **options)  # type: ignore[arg-type]
    assert report.resumed > 0
    assert set(report.filtered_reasons) == {"filtered_where", "filtered_side", "duplicate"}
    assert report.failed == 5
    shardforge.build(raw, tmp_path / "new", max_errors=9, **options)  # type: ignore[arg-type]
    assert digest_tree(tmp_path / "new") == digest_tree(tmp_path / "out")
    assert verify(tmp_path / "out").damage == ()
