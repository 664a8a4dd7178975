"""Builds, from raw files to a dataset on disk: what is promised of the result, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shardforge
from shardforge.errors import StorageError, TooManyFailuresError, UsageError
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from tests.pictures import class_folders, digest_tree, picture, run, write_picture


def rows(out: Path) -> list[dict]:  # type: ignore[type-arg]
    """All rows of a dataset, shard by shard."""
    manifest = Manifest.read(out)
    names = [shard.name for split in manifest.splits.values() for shard in split.shards]
    return pa.concat_tables([pq.read_table(out / f"{name}.parquet") for name in names]).to_pylist()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return class_folders(tmp_path_factory.mktemp("raw"), {"cat": 40, "dog": 30, "eel": 20})


BUILD = {"size": 24, "split": "train=0.8,val=0.2", "shard_samples": 20, "quiet": True}


@pytest.fixture(scope="module")
def built(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "out"
    shardforge.build(raw, out, workers=1, **BUILD)  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize("workers", [2, 4])
def test_bytes_do_not_depend_on_the_number_of_workers(raw: Path, built: Path, tmp_path: Path, workers: int) -> None:
    shardforge.build(raw, tmp_path / "out", workers=workers, **BUILD)  # type: ignore[arg-type]
    assert digest_tree(tmp_path / "out") == digest_tree(built)


def test_bytes_do_not_depend_on_where_the_source_lies_or_when_it_was_written(
    raw: Path, built: Path, tmp_path: Path
) -> None:
    shutil.copytree(raw, tmp_path / "elsewhere", copy_function=shutil.copyfile)
    shardforge.build(tmp_path / "elsewhere", tmp_path / "out", **BUILD)  # type: ignore[arg-type]
    assert digest_tree(tmp_path / "out") == digest_tree(built)


def test_a_dataset_is_whole_and_every_item_has_a_row(built: Path) -> None:
    assert verify(built).damage == ()
    manifest = Manifest.read(built)
    assert manifest.classes == {"cat": 0, "dog": 1, "eel": 2}
    found = rows(built)
    assert len(found) == 90 == manifest.items == manifest.inputs.items
    assert {row["status"] for row in found} == {"success"}
    assert Counter(row["label_name"] for row in found) == {"cat": 40, "dog": 30, "eel": 20}
    assert all(row["source"].startswith(row["label_name"] + "/") for row in found)
    assert sorted(row["key"] for row in found) == [f"{i:09d}" for i in range(90)]
    assert all((row["width"], row["height"], row["channels"]) == (32, 24, 3) for row in found)
    assert all((row["original_width"], row["original_height"]) == (48, 36) for row in found)
    assert all(row["scale_x"] == pytest.approx(24 / 36) for row in found)


def test_nothing_in_a_dataset_tells_where_or_when_it_was_made(raw: Path, built: Path) -> None:
    for path in built.iterdir():
        if path.name != "build.json":
            assert str(raw).encode() not in path.read_bytes()
    assert {path.name for path in built.iterdir()} == {
        "dataset.json", "README.md", "build.json", "train.index.arrow", "val.index.arrow",
        *(f"{shard}.{kind}" for kind in ("tar", "parquet")
          for shard in (s.name for split in Manifest.read(built).splits.values() for s in split.shards)),
    }  # fmt: skip


def test_statistics_are_those_of_the_stored_pixels(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 5, "b": 4})
    shardforge.build(raw, tmp_path / "out", resize="none", format="png", shard_samples=2, quiet=True)
    pixels = np.concatenate(
        [picture(1000 * n + i).reshape(-1, 3) for n, count in enumerate((5, 4)) for i in range(count)]
    )
    stats = Manifest.read(tmp_path / "out").splits["train"].stats
    assert stats is not None
    np.testing.assert_allclose(stats.mean, pixels.mean(0) / 255, rtol=1e-12)
    np.testing.assert_allclose(stats.std, pixels.std(0) / 255, rtol=1e-9)
    counts = np.stack([np.bincount(pixels[:, c], minlength=256) for c in range(3)])
    np.testing.assert_array_equal(np.array(stats.histogram), counts)


def test_shuffled_by_default_and_in_order_when_asked(raw: Path, built: Path, tmp_path: Path) -> None:
    shardforge.build(raw, tmp_path / "out", shuffle=False, **{**BUILD, "split": "train=1"})  # type: ignore[arg-type]
    in_order = [row["source"] for row in rows(tmp_path / "out")]
    assert in_order == sorted(in_order)
    shuffled = [row["label"] for row in rows(built)]
    changes = sum(a != b for a, b in pairwise(shuffled))
    assert changes > 30


def test_shards_differ_by_one_item_at_most_and_keep_the_bounds(built: Path) -> None:
    for split in Manifest.read(built).splits.values():
        counts = [shard.samples for shard in split.shards]
        assert max(counts) <= 20
        assert max(counts) - min(counts) <= 1


def test_shard_size_is_a_target(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 64}, width=64, height=64)
    shardforge.build(raw, tmp_path / "out", resize="none", format="npy", shard_size="256KiB", quiet=True)
    sizes = [shard.bytes for shard in Manifest.read(tmp_path / "out").splits["train"].shards]
    # An npy of 64x64x3 takes 12,288 + 128 bytes of header, padded to 12,800 with the tar's header; cls takes 1,024.
    assert max(sizes) <= 256 * 1024 + 1024
    assert min(sizes) > 128 * 1024


def test_run_again_says_up_to_date_and_touches_nothing(raw: Path, built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.iterdir()}
    report = shardforge.build(raw, built, workers=3, max_errors=5, **BUILD)  # type: ignore[arg-type]
    assert (report.status, report.exit_code) == ("up to date", 0)
    assert {path: path.stat().st_mtime_ns for path in built.iterdir()} == before


def test_another_recipe_is_refused_naming_the_difference(raw: Path, built: Path) -> None:
    with pytest.raises(UsageError, match=r"size 24 -> 32.*--overwrite"):
        shardforge.build(raw, built, **{**BUILD, "size": 32})  # type: ignore[arg-type]


def copy(source: Path, target: Path) -> Path:
    """A copy that keeps modification times."""
    return Path(shutil.copytree(source, target))


def test_changed_inputs_are_refused_naming_the_difference(raw: Path, built: Path, tmp_path: Path) -> None:
    out = copy(built, tmp_path / "out")
    added = copy(raw, tmp_path / "added")
    write_picture(added / "cat" / "new.png", 5)
    with pytest.raises(UsageError, match=r"1 added \(cat/new\.png\)"):
        shardforge.build(added, out, **BUILD)  # type: ignore[arg-type]
    removed = copy(raw, tmp_path / "removed")
    (removed / "dog" / "0003.png").unlink()
    with pytest.raises(UsageError, match=r"1 removed \(dog/0003\.png\)"):
        shardforge.build(removed, out, **BUILD)  # type: ignore[arg-type]
    grown = copy(raw, tmp_path / "grown")
    with open(grown / "eel" / "0001.png", "ab") as file:
        file.write(b"x")
    with pytest.raises(UsageError, match=r"1 changed in size \(eel/0001\.png\)"):
        shardforge.build(grown, out, **BUILD)  # type: ignore[arg-type]
    edited = copy(raw, tmp_path / "edited")
    path = edited / "eel" / "0001.png"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"content of eel/0001\.png"):
        shardforge.build(edited, out, **BUILD)  # type: ignore[arg-type]
    report = shardforge.build(edited, out, overwrite=True, max_errors="50%", **BUILD)  # type: ignore[arg-type]
    assert report.status == "complete"


def test_new_modification_times_alone_are_no_change(raw: Path, built: Path, tmp_path: Path) -> None:
    out, touched = copy(built, tmp_path / "out"), copy(raw, tmp_path / "touched")
    for path in touched.rglob("*.png"):
        os.utime(path, ns=(1, 1))
    assert shardforge.build(touched, out, **BUILD).status == "up to date"  # type: ignore[arg-type]


def test_a_dataset_that_has_lost_files_is_not_up_to_date(raw: Path, built: Path, tmp_path: Path) -> None:
    for number, name in enumerate(["train-000001.tar", "val-000000.parquet", "train.index.arrow"]):
        out = copy(built, tmp_path / f"out{number}")
        (out / name).unlink()
        with pytest.raises(StorageError, match=rf"{name}.*missing.*--overwrite"):
            shardforge.build(raw, out, **BUILD)  # type: ignore[arg-type]
        shardforge.build(raw, out, overwrite=True, **BUILD)  # type: ignore[arg-type]
        assert digest_tree(out) == digest_tree(built)


def test_a_dataset_with_damaged_small_files_is_not_up_to_date(raw: Path, built: Path, tmp_path: Path) -> None:
    for number, name in enumerate(["train-000001.parquet", "train.index.arrow", "train-000000.tar"]):
        out = copy(built, tmp_path / f"out{number}")
        with open(out / name, "ab") as file:
            file.write(b"more")
        with pytest.raises(StorageError, match=rf"{name}.*--overwrite"):
            shardforge.build(raw, out, **BUILD)  # type: ignore[arg-type]


def test_a_dataset_without_its_manifest_can_be_built_anew(raw: Path, built: Path, tmp_path: Path) -> None:
    out = copy(built, tmp_path / "out")
    (out / "dataset.json").unlink()
    with pytest.raises(UsageError, match=r"lost its dataset\.json.*--overwrite"):
        shardforge.build(raw, out, **BUILD)  # type: ignore[arg-type]
    shardforge.build(raw, out, overwrite=True, **BUILD)  # type: ignore[arg-type]
    assert digest_tree(out) == digest_tree(built)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_nothing_travels_along_with_files_that_are_stored_as_they_are(tmp_path: Path) -> None:
    """Bytes that decoders pass over, hidden at every place a PNG, a JPEG and a WebP have for them."""
    raw, secret = tmp_path / "raw", b"SECRETLEAK"
    whole = write_picture(raw / "plain.png", 1).read_bytes()
    header, rest = whole[:33], whole[33:]
    pixels = zlib.decompress(b"".join(re.findall(rb"IDAT(.*?)....(?=....(?:IDAT|IEND))", rest, re.DOTALL)))
    end = png_chunk(b"IEND", b"")
    idat = png_chunk(b"IDAT", zlib.compress(pixels))
    hidden = {
        "behind.png": header + png_chunk(b"IDAT", zlib.compress(pixels) + secret) + end,
        "inside.png": header + png_chunk(b"IDAT", zlib.compress(pixels + secret * 20, 0)) + end,
        "another.png": header + idat + png_chunk(b"IDAT", secret) + end,
        "frame.png": header + idat + png_chunk(b"fdAT", b"\0\0\0\1" + secret) + end,
        "gamma.png": header + png_chunk(b"gAMA", b"\0\0\xb1\x8f" + secret) + idat + end,
        "palette.png": header + png_chunk(b"PLTE", secret + secret + b"x") + idat + end,
        "text.png": header + png_chunk(b"tEXt", b"Comment\0" + secret) + idat + end,
        "tail.png": header + idat + end + secret,
    }
    for name, data in hidden.items():
        (raw / name).write_bytes(data)
    report = shardforge.build(raw, tmp_path / "png", format="png", max_errors="100%", quiet=True)
    assert report.samples >= 7
    photos = tmp_path / "photos"
    data = write_picture(photos / "plain.jpg", 1).read_bytes()
    dnl = b"\xff\xdc" + struct.pack(">H", 2 + len(secret)) + secret
    (photos / "lines.jpg").write_bytes(data[:-2] + dnl + data[-2:])
    (photos / "tail.jpg").write_bytes(data + secret)
    shardforge.build(photos, tmp_path / "jpg", max_errors="100%", quiet=True)
    plain = write_picture(tmp_path / "webps" / "plain.webp", 1).read_bytes()
    chunk = plain[12:16] + (len(plain) - 20 + len(secret)).to_bytes(4, "little") + plain[20:] + secret
    behind = plain[12:] + b"ALPH" + len(secret).to_bytes(4, "little") + secret
    for name, chunks in {"inside.webp": chunk, "behind.webp": behind}.items():
        content = b"WEBP" + chunks
        (tmp_path / "webps" / name).write_bytes(b"RIFF" + len(content).to_bytes(4, "little") + content)
    shardforge.build(tmp_path / "webps", tmp_path / "webp", format="webp", quiet=True)
    flags = {row["source"]: row["flags"] for row in rows(tmp_path / "webp")}
    assert flags == {"plain.webp": ["passed_through"], "inside.webp": [], "behind.webp": []}
    for out in ("png", "jpg", "webp"):
        for path in (tmp_path / out).iterdir():
            assert secret not in path.read_bytes()
            assert verify(tmp_path / out).damage == ()


def test_a_damaged_manifest_is_exit_3_and_names_the_way_out(raw: Path, built: Path, tmp_path: Path) -> None:
    out = copy(built, tmp_path / "out")
    for damage in (b"[]", b"{", (out / "dataset.json").read_bytes().replace(b'"seed": 0', b'"seed": 1')):
        (out / "dataset.json").write_bytes(damage)
        with pytest.raises(StorageError, match="--overwrite") as caught:
            shardforge.build(raw, out, **BUILD)  # type: ignore[arg-type]
        assert caught.value.exit_code == 3


def test_what_a_kill_left_beside_a_finished_dataset_is_cleared_away(raw: Path, built: Path, tmp_path: Path) -> None:
    out = copy(built, tmp_path / "out")
    (out / ".staging").mkdir()
    (out / ".staging" / "plan.json").write_text("{}")
    assert shardforge.build(raw, out, **BUILD).status == "up to date"  # type: ignore[arg-type]
    assert digest_tree(out) == digest_tree(built)
    assert not (out / ".staging").exists()


def test_overwrite_starts_anew_and_leaves_other_files_alone(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shardforge.build(raw, out, size=16, shard_samples=10, quiet=True)
    (out / "notes.txt").write_text("mine")
    shardforge.build(raw, out, size=8, overwrite=True, quiet=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert [shard.name for shard in Manifest.read(out).splits["train"].shards] == ["train-000000"]
    assert not (out / "train-000005.tar").exists()
    assert verify(out).damage == ()


def test_a_dry_run_tells_the_plan_and_writes_nothing(raw: Path, tmp_path: Path) -> None:
    result = run("build", raw, tmp_path / "out", "--dry-run", "--split", "train=0.8,val=0.2", "--json")
    report = json.loads(result.stdout)
    assert (result.returncode, report["status"], report["items"]) == (0, "planned", 90)
    assert report["splits"]["train"]["items"] + report["splits"]["val"]["items"] == 90
    assert report["bytes"] > 0
    assert not (tmp_path / "out").exists()


def test_folders_in_each_other_are_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="inside the source"):
        shardforge.build(raw, raw / "out", quiet=True)
    with pytest.raises(UsageError, match="inside the output"):
        shardforge.build(raw / "cat", raw, quiet=True)
    (tmp_path / "link").symlink_to(raw)
    with pytest.raises(UsageError, match="inside the source"):
        shardforge.build(raw, tmp_path / "link" / "out", quiet=True)


def test_a_folder_with_other_files_is_refused_and_kept(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match=r"precious\.txt"):
            shardforge.build(raw, tmp_path, overwrite=overwrite, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_an_empty_or_absent_source_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        shardforge.build(tmp_path / "empty", tmp_path / "out", quiet=True)
    with pytest.raises(UsageError, match="does not exist"):
        shardforge.build(tmp_path / "absent", tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def test_an_empty_split_names_the_way_out_and_stratified_is_it(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 2, "b": 2})
    with pytest.raises(UsageError, match="--split-by stratified"):
        shardforge.build(raw, tmp_path / "out", split="train=0.999,val=0.001", quiet=True)
    shardforge.build(raw, tmp_path / "out", split="train=0.999,val=0.001", split_by="stratified", quiet=True)
    manifest = Manifest.read(tmp_path / "out")
    assert (manifest.splits["train"].samples, manifest.splits["val"].samples) == (3, 1)
    assert sum(map(len, manifest.groups.values())) == 4


def test_a_stratified_split_is_kept_by_a_later_build(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 12, "b": 8})
    split = {"split": "train=0.75,val=0.25", "split_by": "stratified", "quiet": True}
    shardforge.build(raw, tmp_path / "one", **split)  # type: ignore[arg-type]
    class_folders(raw, {"a": 24, "b": 16})
    shardforge.build(raw, tmp_path / "two", split_from=tmp_path / "one", **split)  # type: ignore[arg-type]
    before = {row["source"]: row["split"] for row in rows(tmp_path / "one")}
    after = {row["source"]: row["split"] for row in rows(tmp_path / "two")}
    assert {source: after[source] for source in before} == before
    assert Counter(after.values()) == {"train": 30, "val": 10}


def test_a_label_in_one_split_only_is_pointed_out(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"train/a": 3, "train/b": 3, "val/a": 2})
    report = shardforge.build(raw, tmp_path / "out", quiet=True)
    assert report.warnings == ("1 of 2 labels appear in the split 'train' only: b",)


def test_broken_files_become_rows_with_reasons(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 12}, extension="jpg")
    whole = (raw / "a" / "0000.jpg").read_bytes()
    (raw / "a" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (raw / "a" / "text.jpg").write_text("<html>404</html>")
    (raw / "a" / "empty.jpg").write_bytes(b"")
    report = shardforge.build(raw, tmp_path / "out", quiet=True)
    assert report.exit_code == 1
    reasons = {row["source"]: row["reason"] for row in rows(tmp_path / "out") if row["status"] == "failed"}
    assert reasons == {"a/cut.jpg": "truncated", "a/text.jpg": "not_an_image", "a/empty.jpg": "empty"}
    assert (report.items, report.samples, report.failed) == (15, 12, 3)
    assert verify(tmp_path / "out").damage == ()
    again = shardforge.build(raw, tmp_path / "out", quiet=True)
    assert (again.status, again.exit_code, again.reasons) == ("up to date", 0, report.reasons)


def test_too_many_failures_stop_the_build_and_a_higher_limit_resumes_it(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 20})
    for i in range(12):
        (raw / "a" / f"broken{i}.png").write_bytes(b"no picture")
    out = tmp_path / "out"
    with pytest.raises(TooManyFailuresError, match=r"--max-errors") as caught:
        shardforge.build(raw, out, shard_samples=4, workers=1, quiet=True)
    assert caught.value.exit_code == 4
    assert not (out / "dataset.json").exists()
    report = shardforge.build(raw, out, shard_samples=4, workers=1, max_errors="40%", quiet=True)
    assert (report.status, report.samples, report.failed) == ("complete", 20, 12)
    assert report.resumed > 0
    assert verify(out).damage == ()


def test_exactly_so_many_failures_are_allowed(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 20})
    for i in range(3):
        (raw / "a" / f"broken{i}.png").write_bytes(b"no picture")
    assert shardforge.build(raw, tmp_path / "three", max_errors=3, quiet=True).failed == 3
    with pytest.raises(TooManyFailuresError):
        shardforge.build(raw, tmp_path / "two", max_errors=2, quiet=True)


def test_resize_exact_does_not_enlarge_unless_asked(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 4})
    report = shardforge.build(raw, tmp_path / "out", size=40, resize="exact", max_errors="100%", quiet=True)
    assert report.reasons == {"too_small": 4}
    report = shardforge.build(raw, tmp_path / "big", size=40, resize="exact", enlarge=True, quiet=True)
    assert {(row["width"], row["height"]) for row in rows(tmp_path / "big")} == {(40, 40)}


def test_keep_leaves_clean_files_as_they_are(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 3}, extension="jpg")
    shardforge.build(raw, tmp_path / "out", format="keep", quiet=True)
    dataset = shardforge.open(tmp_path / "out")
    assert len(dataset) == 3
    for source, payload in payloads(tmp_path / "out", "jpg").items():
        assert payload == (raw / source).read_bytes()


def payloads(out: Path, field: str) -> dict[str, bytes]:
    """source → stored bytes of a field."""
    found = {}
    for row in rows(out):
        if row["status"] == "success":
            tar = (out / f"{row['shard']}.tar").read_bytes()
            found[row["source"]] = tar[row[f"{field}_offset"] : row[f"{field}_offset"] + row[f"{field}_size"]]
    return found


def test_small_clean_files_are_not_encoded_a_second_time(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 3}, extension="jpg")
    write_picture(raw / "a" / "large.jpg", 9, width=400, height=300)
    grey = cv2.cvtColor(picture(4), cv2.COLOR_RGB2GRAY)
    cv2.imwrite(str(raw / "a" / "grey.jpg"), grey)
    first = (raw / "a" / "0000.jpg").read_bytes()
    (raw / "a" / "comment.jpg").write_bytes(first[:2] + b"\xff\xfe\x00\x0aSECRET!!" + first[2:])
    (raw / "a" / "unended.jpg").write_bytes(first[:-2])
    options = {"max_errors": 9, "quiet": True}
    shardforge.build(raw, tmp_path / "auto", **options)  # type: ignore[arg-type]
    stored = payloads(tmp_path / "auto", "jpg")
    passed = {row["source"] for row in rows(tmp_path / "auto") if "passed_through" in row["flags"]}
    assert passed == {"a/0000.jpg", "a/0001.jpg", "a/0002.jpg", "a/comment.jpg"}
    assert all(stored[name] == (raw / name).read_bytes() for name in passed - {"a/comment.jpg"})
    assert stored["a/comment.jpg"] == first
    shardforge.build(raw, tmp_path / "always", reencode="always", **options)  # type: ignore[arg-type]
    assert not any("passed_through" in row["flags"] for row in rows(tmp_path / "always"))
    assert all(payloads(tmp_path / "always", "jpg")[name] != stored[name] for name in passed)
    report = shardforge.build(raw, tmp_path / "never", reencode="never", **options)  # type: ignore[arg-type]
    assert report.reasons == {"needs_reencoding": 3}
    for out in ("auto", "always", "never"):
        assert verify(tmp_path / out).damage == ()


def test_keep_refuses_mixed_formats(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 2}, extension="jpg")
    class_folders(raw, {"b": 1}, extension="png")
    with pytest.raises(UsageError, match=r"2 jpg, 1 png.*--format"):
        shardforge.build(raw, tmp_path / "out", format="keep", quiet=True)


def test_sidecars_become_members_and_masks_follow_the_image(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(4):
        write_picture(raw / f"{i}.jpg", i, width=40, height=20)
        (raw / f"{i}.txt").write_text(f"caption {i}")
        (raw / f"{i}.json").write_text('{"b": 1, "a": [2]}')
        mask = np.zeros((20, 40), np.uint8)
        mask[:, 20:] = 7
        cv2.imwrite(str(raw / f"{i}.mask.png"), mask)
    (raw / "3.json").write_text("{broken")
    report = shardforge.build(raw, tmp_path / "out", size=10, quiet=True)
    assert report.reasons == {"bad_sidecar": 1}
    sample = shardforge.open(tmp_path / "out")
    manifest = Manifest.read(tmp_path / "out")
    assert set(manifest.fields) == {"jpg", "json", "mask.png", "txt"}
    row = next(row for row in rows(tmp_path / "out") if row["source"] == "0.jpg")
    tar = (tmp_path / "out" / "train-000000.tar").read_bytes()

    def payload(field: str) -> bytes:
        return tar[row[f"{field}_offset"] : row[f"{field}_offset"] + row[f"{field}_size"]]

    assert payload("txt") == b"caption 0"
    assert payload("json") == b'{"a":[2],"b":1}'
    mask = cv2.imdecode(np.frombuffer(payload("mask.png"), np.uint8), cv2.IMREAD_UNCHANGED)
    expected = np.zeros((10, 20), np.uint8)
    expected[:, 10:] = 7
    np.testing.assert_array_equal(mask, expected)
    assert len(sample) == 3


def test_a_required_field_that_is_missing_fails_the_item(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 3})
    (raw / "a" / "0001.txt").write_text("words")
    report = shardforge.build(raw, tmp_path / "out", fields={"txt": "required"}, max_errors="100%", quiet=True)
    assert report.reasons == {"missing_field": 2}
    report = shardforge.build(raw, tmp_path / "opt", quiet=True)
    assert Manifest.read(tmp_path / "opt").fields["txt"].optional
    assert report.failed == 0


def write_table(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_table_brings_labels_groups_captions_and_further_columns(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    lines = ["file,finding,patient,caption,age,width"]
    for i in range(60):
        write_picture(raw / f"scan{i}.png", i)
        lines.append(f"scan{i}.png,{'sick' if i % 3 else 'well'},p{i // 6},a picture of {i},{20 + i},{i}")
    lines.append("gone.png,sick,p0,nothing,1,1")
    table = write_table(tmp_path / "items.csv", lines)
    report = shardforge.build(
        raw, tmp_path / "out", table=table, label="finding", group="patient", split="train=0.7,val=0.3", quiet=True
    )
    assert report.reasons == {"missing_file": 1}
    found = rows(tmp_path / "out")
    assert len(found) == 61
    by_patient: dict[str, set[str]] = {}
    for row in found:
        by_patient.setdefault(row["group"], set()).add(row["split"])
        if row["source"] != "gone.png":
            number = int(row["source"][4:-4])
            assert (row["age"], row["user_width"]) == (20 + number, number)
            assert row["caption"] == f"a picture of {number}"
            assert row["label_name"] == ("sick" if number % 3 else "well")
    assert all(len(splits) == 1 for splits in by_patient.values())
    assert verify(tmp_path / "out").damage == ()


def test_multi_labels_and_regression_reach_parquet_and_json(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(4):
        write_picture(raw / f"{i}.png", i)
    table = write_table(tmp_path / "m.csv", ["path,tags", "0.png,b|a", "1.png,c", "2.png,a", "3.png,c|b"])
    shardforge.build(raw, tmp_path / "multi", table=table, label="tags", label_separator="|", quiet=True)
    manifest = Manifest.read(tmp_path / "multi")
    assert (manifest.label.kind, manifest.classes) == ("multi", {"a": 0, "b": 1, "c": 2})
    found = {row["source"]: row for row in rows(tmp_path / "multi")}
    assert found["0.png"]["label"] == [0, 1]
    assert "cls" not in manifest.fields
    tar = (tmp_path / "multi" / "train-000000.tar").read_bytes()
    row = found["3.png"]
    member = json.loads(tar[row["json_offset"] : row["json_offset"] + row["json_size"]])
    assert member == {"label": [1, 2], "label_name": ["b", "c"]}

    table = write_table(tmp_path / "r.csv", ["path,x,y", "0.png,0.5,1", "1.png,2,3", "2.png,4,5", "3.png,6,nothing"])
    report = shardforge.build(raw, tmp_path / "number", table=table, label=("x", "y"), quiet=True)
    assert report.reasons == {"bad_label": 1}
    found = {row["source"]: row for row in rows(tmp_path / "number")}
    assert found["0.png"]["label"] == [0.5, 1.0]
    assert verify(tmp_path / "number").damage == ()


def test_users_keys_and_their_duplicates(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for i in range(4):
        write_picture(raw / f"{i}.png", i)
    table = write_table(tmp_path / "k.csv", ["path,id", "0.png,x-1", "1.png,x-1", "2.png,no.dots", "3.png,ok/3"])
    report = shardforge.build(raw, tmp_path / "out", table=table, keys="column:id", quiet=True)
    assert report.reasons == {"duplicate_key": 1, "bad_key": 1}
    good = {row["source"]: row["key"] for row in rows(tmp_path / "out") if row["status"] == "success"}
    assert good == {"0.png": "x-1", "3.png": "ok/3"}
    assert verify(tmp_path / "out").damage == ()


def test_stem_keys_are_legal_and_unique(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    for name in ("a b.png", "a.b.png", "ünï.png", "__x.png", "n" * 200 + ".png"):
        write_picture(raw / name, 1)
    shardforge.build(raw, tmp_path / "out", keys="stem", quiet=True)
    keys = [row["key"] for row in rows(tmp_path / "out")]
    assert len(set(keys)) == 5
    assert any(key.startswith("a_b-00000000") for key in keys)
    assert verify(tmp_path / "out").damage == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system to fill it up")
def test_a_full_disk_is_one_clear_message_and_the_build_resumes(tmp_path: Path) -> None:
    raw = class_folders(tmp_path / "raw", {"a": 60}, width=100, height=100)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(small)], check=True)
    try:
        options = {"resize": "none", "format": "npy", "shard_samples": 10, "quiet": True}
        with pytest.raises(StorageError, match=r"the disk is full.*same command"):
            shardforge.build(raw, small / "out", **options)  # type: ignore[arg-type]
        subprocess.run(["mount", "-o", "remount,size=64M", str(small)], check=True)
        report = shardforge.build(raw, small / "out", **options)  # type: ignore[arg-type]
        assert report.samples == 60
        assert verify(small / "out").damage == ()
        shardforge.build(raw, tmp_path / "out", **options)  # type: ignore[arg-type]
        assert digest_tree(small / "out") == digest_tree(tmp_path / "out")
    finally:
        subprocess.run(["umount", str(small)], check=True)
