"""Builds with filters: who is left out, why, and that nothing else changes by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import shardforge
from shardforge.codecs.decode import decode
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.compile.geometry_filter import HEADER_TELLS, judge_geometry
from shardforge.errors import SampleError, UsageError
from shardforge.geometry.orientation import oriented_size
from shardforge.inspect.summary import summarise
from shardforge.sections import FilterOptions
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from tests.built import rows
from tests.pictures import digest_tree, run, write_picture


@pytest.mark.parametrize(
    ("options", "size", "reason"),
    [
        ({"min_side": 100}, (99, 500), "filtered_side"),
        ({"min_side": 100}, (100, 500), None),
        ({"max_side": 500}, (100, 501), "filtered_side"),
        ({"max_side": 500}, (500, 500), None),
        ({"min_area": 5000}, (50, 99), "filtered_area"),
        ({"max_area": 5000}, (50, 100), None),
        ({"max_area": 5000}, (51, 100), "filtered_area"),
        ({"min_aspect": 0.5}, (49, 100), "filtered_aspect"),
        ({"min_aspect": 0.5, "max_aspect": 2}, (200, 100), None),
        ({"max_aspect": 2}, (201, 100), "filtered_aspect"),
        ({"min_side": 100, "max_aspect": 2}, (99, 10), "filtered_side"),
    ],
)
def test_bounds_are_inclusive(options: dict[str, float], size: tuple[int, int], reason: str | None) -> None:
    filters = FilterOptions(**options)  # type: ignore[arg-type]
    if reason is None:
        judge_geometry(*size, filters)
    else:
        with pytest.raises(SampleError) as caught:
            judge_geometry(*size, filters)
        assert caught.value.reason == reason


def test_the_header_tells_what_decoding_gives(corpus: Path) -> None:
    limits, judged = Limits(pixels=20_000_000), set()
    for path in sorted((corpus / "images").rglob("*")):
        if not path.is_file() or path.stat().st_size > 400_000:
            continue
        data = path.read_bytes()
        try:
            header = read_header(data, limits)
            picture = decode(data, channels=3, background=(0, 0, 0), limits=limits)
        except SampleError:
            continue
        if header.format in HEADER_TELLS:
            told = oriented_size(header.width, header.height, header.orientation or 1)
            assert told == (picture.source_width, picture.source_height), path.name
            judged.add(header.format)
    assert judged >= {"jpeg", "png", "webp", "tiff", "gif", "bmp", "avif"}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 24 pictures of four sizes; the last is broken behind its header."""
    raw = tmp_path_factory.mktemp("raw")
    lines = ["path,finding,age,reviewed"]
    for i in range(24):
        width, height = ((40, 40), (30, 60), (90, 30), (64, 64))[i % 4]
        write_picture(raw / f"{i:02d}.jpg", i, width=width, height=height)
        lines.append(f"{i:02d}.jpg,{'junk' if i % 6 == 5 else 'ab'[i % 2]},{i if i != 20 else ''},{i < 16}")
    broken = raw / "23.jpg"
    broken.write_bytes(broken.read_bytes()[:700])
    turned = Image.open(raw / "01.jpg")
    exif = Image.Exif()
    exif[0x0112] = 6
    turned.save(raw / "01.jpg", exif=exif)
    (raw / "items.csv").write_text("\n".join(lines) + "\n")
    return raw


OPTIONS = ("--size", "16", "--shard-samples", "7", "--max-errors", "0")


def test_filtered_items_are_rows_that_cost_nothing_and_count_for_nothing(raw: Path, tmp_path: Path) -> None:
    # Side 64 is too long; 30 x 60 is too tall, but the one that is turned is 60 x 30.
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        f"table: {raw}/items.csv\nlabel: finding\nfilters: {{max_side: 90, max_area: 4000, min_aspect: 0.9}}\n"
    )
    result = run("build", raw, tmp_path / "out", "--recipe", recipe, *OPTIONS, "--workers", "2", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["failed"]) == (0, 0), result.stderr
    assert report["filtered_reasons"] == {"filtered_area": 6, "filtered_aspect": 5}
    assert report["items"] == 24 == report["samples"] + sum(report["filtered_reasons"].values())
    found = rows(tmp_path / "out")
    assert found["23.jpg"]["reason"] == "filtered_area"
    assert (found["23.jpg"]["original_width"], found["23.jpg"]["decoder"]) == (64, None)
    assert found["23.jpg"]["source_sha256"] is not None
    assert found["01.jpg"]["status"] == "success"
    assert found["05.jpg"]["reason"] == "filtered_aspect"
    assert verify(tmp_path / "out").damage == ()
    problems = {(problem.status, problem.reason): problem.count for problem in summarise(tmp_path / "out").problems}
    assert problems == {("filtered", "filtered_area"): 6, ("filtered", "filtered_aspect"): 5}
    one = run("build", raw, tmp_path / "one", "--recipe", recipe, *OPTIONS, "--workers", "1", "--quiet")
    assert one.returncode == 0
    assert digest_tree(tmp_path / "one") == digest_tree(tmp_path / "out")


def test_where_leaves_out_rows_and_their_classes(raw: Path, tmp_path: Path) -> None:
    where = "finding <> 'junk' and (reviewed or age > 20) and not age in (3, 4)"
    report = shardforge.build(
        raw, tmp_path / "out", table=raw / "items.csv", label="finding", where=where, max_side=64, size=16,
        split="train=0.5,val=0.5", split_by="stratified", quiet=True,
    )  # fmt: skip
    junk = {i for i in range(24) if i % 6 == 5}
    kept = {i for i in range(24) if i not in junk and (i < 16 or i > 20) and i not in (3, 4)}
    found = rows(tmp_path / "out")
    assert {source for source, row in found.items() if row["reason"] == "filtered_where"} == {
        f"{i:02d}.jpg" for i in range(24) if i not in kept
    }
    wide = {i for i in kept if i % 4 == 2}
    assert report.filtered_reasons == {"filtered_where": 24 - len(kept), "filtered_side": len(wide)}
    assert Manifest.read(tmp_path / "out").classes == {"a": 0, "b": 1}
    assert report.exit_code == 0
    assert sum(count for counts in report.balance.values() for count in counts.values()) == len(kept)
    assert verify(tmp_path / "out").damage == ()


def test_a_build_that_filters_everything_succeeds_and_says_that_nothing_is_left(raw: Path, tmp_path: Path) -> None:
    arguments = (raw, tmp_path / "out", "--table", raw / "items.csv", "--label", "finding", "--size", 16)
    result = run("build", *arguments, "--min-side", 5000)
    assert result.returncode == 0
    assert "warning: the dataset is EMPTY" in result.stdout
    # The table of classes shows items that are gone by the end.
    told = result.stderr.splitlines()
    assert told[next(i for i, line in enumerate(told) if line.startswith("class ")) - 1].startswith("classes, before")
    assert verify(tmp_path / "out").damage == ()
    again = json.loads(run("build", *arguments, "--min-side", 5000, "--json").stdout)
    assert (again["status"], again["samples"]) == ("up to date", 0)
    assert again["warnings"] == ["the dataset is EMPTY: no item became a sample"]
    dry = run("build", raw, tmp_path / "dry", "--table", raw / "items.csv", "--size", 16, "--dry-run")
    assert "EMPTY" not in dry.stdout + dry.stderr
    assert "classes, before" not in dry.stderr


def test_a_split_of_which_nothing_is_left_is_named(tmp_path: Path) -> None:
    for i in range(6):
        small = i < 4
        write_picture(
            tmp_path / "raw" / ("train" if small else "val") / "a" / f"{i}.jpg", i, *(30, 30) if small else (90, 90)
        )
    report = shardforge.build(tmp_path / "raw", tmp_path / "out", min_side=64, size=16, quiet=True)
    assert (report.exit_code, report.samples) == (0, 2)
    assert report.warnings == ("the split 'train' is EMPTY: none of its 4 items became a sample",)
    assert f"warning: {report.warnings[0]}" in report.lines()


def test_where_errors_name_the_columns_there_are(raw: Path, tmp_path: Path) -> None:
    arguments = ("build", raw, tmp_path / "out", "--table", raw / "items.csv", "--label", "finding", "--where")
    result = run(*arguments, "agee > 3")
    assert result.returncode == 2
    assert "at character 1 of 'agee > 3': there is no column 'agee' (did you mean 'age'?)" in result.stderr
    assert "age, reviewed, source, group, split, caption, finding, label" in result.stderr
    with pytest.raises(UsageError, match="true for none of the 24 items"):
        shardforge.build(raw, tmp_path / "out", table=raw / "items.csv", where="age > 1000", quiet=True)
    assert not (tmp_path / "out").exists()


def test_where_goes_before_what_is_wrong_with_a_row(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(3):
        write_picture(raw / f"{i}.png", i)
    table = tmp_path / "items.csv"
    table.write_text("path,id,n\n0.png,a,0\n1.png,c,1\ngone.png,b,1\n2.png,c,0\n")
    report = shardforge.build(raw, tmp_path / "out", table=table, keys="column:id", where="n = 0", quiet=True)
    assert (report.samples, report.failed, report.filtered_reasons) == (2, 0, {"filtered_where": 2})
    assert verify(tmp_path / "out").damage == ()
