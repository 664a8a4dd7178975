"""Files with several frames or pages: the first, all of them, or none."""

from __future__ import annotations

import io
import shutil
import struct
import zlib
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.verify import verify
from shardforge.stream.dataset import ShardDataset
from tests.codecs.test_frames import full, gif, gif_frame, pages
from tests.compile.test_build import rows
from tests.pictures import digest_tree, picture, run, write_picture

FRAMES = 5


def animation(seed: int, frames: int = FRAMES) -> bytes:
    """A GIF of whole frames, by Pillow."""
    pictures = [Image.fromarray(picture(100 * seed + n, 24, 18)).quantize(64) for n in range(frames)]
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=50)
    return file.getvalue()


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("raw")
    for label in ("a", "b"):
        for i in range(4):
            write_picture(root / label / f"still{i}.png", i, 24, 18)
        for i in range(3):
            (root / label / f"moving{i}.gif").write_bytes(animation(i + 10 * (label == "b")))
    (root / "a" / "pages.tif").write_bytes(pages((4, 3, 10, 1, 0), (2, 2, 20, 1, 1), (5, 2, 30, 6, 2)))
    return root


OPTIONS: dict[str, Any] = {"format": "png", "resize": "none", "shard_samples": 7, "quiet": True}


@pytest.fixture(scope="module")
def built(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "out"
    split = {"split": "train=0.5,val=0.5", "split_by": "stratified"}
    report = shardforge.build(raw, out, frames="all", workers=1, **split, **OPTIONS)
    assert report.items == report.samples == 8 + 6 * FRAMES + 2
    assert any("7 files with several, 32 items of them" in note for note in report.notes)
    return out


def test_every_frame_is_a_sample_with_its_number_and_those_of_a_file_stay_together(built: Path) -> None:
    found = rows(built)
    by_source: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in found:
        by_source[row["source"]].append(row)
    for source, frames in by_source.items():
        count = {"gif": FRAMES, "tif": 2, "png": 1}[source[-3:]]
        assert sorted(row["frame"] for row in frames) == list(range(count))
        assert {row["n_frames"] for row in frames} == {count}
        assert len({row["split"] for row in frames}) == 1
        assert len({row["source_sha256"] for row in frames}) == 1
        assert {row["label_name"] for row in frames} == {source[0]}
        assert all(("frame" in row["flags"]) == (count > 1) for row in frames)
        assert not any("first_frame" in row["flags"] for row in frames)
    assert len({row["key"] for row in found}) == len(found)
    assert verify(built).damage == ()
    schema = shardforge.open(built).metadata.schema
    assert [str(schema.field(name).type) for name in ("frame", "n_frames")] == ["int32", "int32"]


def test_the_pixels_of_every_frame_are_those_that_pillow_shows(raw: Path, built: Path) -> None:
    seen = 0
    for row in rows(built):
        if row["source"].endswith(".gif"):
            tar = (built / f"{row['shard']}.tar").read_bytes()
            payload = tar[row["png_offset"] : row["png_offset"] + row["png_size"]]
            stored = cv2.imdecode(np.frombuffer(payload, np.uint8), cv2.IMREAD_COLOR_RGB)
            with Image.open(raw / row["source"]) as other:
                other.seek(row["frame"])
                assert np.array_equal(stored, np.asarray(other.convert("RGB")))
            seen += 1
    assert seen == 6 * FRAMES


def test_frames_of_a_file_are_shuffled_apart_and_in_order_when_asked(raw: Path, built: Path, tmp_path: Path) -> None:
    neighbours = [row["source"] for row in rows(built)]
    assert sum(a == b for a, b in pairwise(neighbours)) < 20
    shardforge.build(raw, tmp_path / "out", frames="all", shuffle=False, **OPTIONS)
    places = [(row["source"], row["frame"]) for row in rows(tmp_path / "out")]
    assert places == sorted(places)


def test_the_stream_gives_every_frame(built: Path) -> None:
    found = [
        (sample["source"], int(sample["frame"]))
        for split in ("train", "val")
        for sample in ShardDataset(built, split=split, fields=("image", "source", "frame"))
    ]
    assert sorted(found) == sorted((row["source"], row["frame"]) for row in rows(built))


def test_the_same_bytes_for_any_number_of_workers_and_up_to_date_afterwards(raw: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        shardforge.build(raw, tmp_path / str(workers), frames="all", workers=workers, **OPTIONS)
    assert digest_tree(tmp_path / "1") == digest_tree(tmp_path / "2")
    assert shardforge.build(raw, tmp_path / "1", frames="all", **OPTIONS).status == "up to date"


def test_a_changed_animation_is_noticed(raw: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(raw, tmp_path / "raw"))
    shardforge.build(copied, tmp_path / "out", frames="all", **OPTIONS)
    path = copied / "a" / "moving1.gif"
    data = bytearray(path.read_bytes())
    data[14] ^= 1  # a colour of the table
    path.write_bytes(data)
    with pytest.raises(UsageError, match=r"content of a/moving1\.gif"):
        shardforge.build(copied, tmp_path / "out", frames="all", **OPTIONS)
    whole = animation(1)
    cut = whole[: whole.rindex(b"!\xf9\x04")]
    path.write_bytes(cut + bytes(len(whole) - len(cut) - 1) + b";")
    with pytest.raises(UsageError, match=r"another number of frames \(a/moving1\.gif\)"):
        shardforge.build(copied, tmp_path / "out", frames="all", **OPTIONS)


def test_by_default_the_first_is_taken_and_reject_fails_the_file(raw: Path, tmp_path: Path) -> None:
    report = shardforge.build(raw, tmp_path / "first", **OPTIONS)
    found = {row["source"]: row for row in rows(tmp_path / "first")}
    assert report.items == report.samples == len(found) == 15
    assert {row["frame"] for row in found.values()} == {0}
    assert {source for source, row in found.items() if "first_frame" in row["flags"]} == {
        source for source in found if not source.endswith("png")
    }
    assert {found["a/moving0.gif"]["n_frames"], found["a/pages.tif"]["n_frames"]} == {FRAMES, 2}
    report = shardforge.build(raw, tmp_path / "none", frames="reject", max_errors="100%", **OPTIONS)
    assert report.reasons == {"several_frames": 7}
    rejected = [row for row in rows(tmp_path / "none") if row["status"] == "failed"]
    assert {row["n_frames"] for row in rejected} == {FRAMES, 2}
    assert verify(tmp_path / "none").damage == ()


def test_a_frame_that_cannot_be_decoded_is_a_failed_row_of_its_own(tmp_path: Path) -> None:
    broken = bytearray(gif_frame(0, 0, full(1), 0, False))
    broken[18] = 13
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "x.gif").write_bytes(
        gif(4, 3, gif_frame(0, 0, full(0), 0, False), bytes(broken), gif_frame(0, 0, full(2), 0, False))
    )
    report = shardforge.build(tmp_path / "raw", tmp_path / "out", frames="all", shuffle=False, **OPTIONS)
    assert report.reasons == {"corrupt": 1}
    assert [row["status"] for row in rows(tmp_path / "out")] == ["success", "failed", "success"]
    assert verify(tmp_path / "out").damage == ()


def test_sidecars_labels_groups_and_own_keys_go_to_every_frame(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    for i in range(4):
        (raw / f"{i}.gif").write_bytes(animation(i, 3))
        cv2.imwrite(str(raw / f"{i}.mask.png"), np.full((18, 24), i, np.uint8))
    write_picture(raw / "4.png", 4, 24, 18)
    cv2.imwrite(str(raw / "4.mask.png"), np.full((18, 24), 4, np.uint8))
    lines = ["path,kind,who,id,caption,mask"]
    lines += [f"{n}.{'png' if n == 4 else 'gif'},k{n % 2},p{n // 2},key{n},text {n},{n}.mask.png" for n in range(5)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    shardforge.build(
        raw, tmp_path / "out", table=tmp_path / "t.csv", label="kind", group="who", keys="column:id",
        caption="caption", mask="mask", frames="all", split="train=0.5,val=0.5", split_by="stratified", **OPTIONS,
    )  # fmt: skip
    found = rows(tmp_path / "out")
    assert {row["key"] for row in found} == {"key4", *(f"key{i}-{n:05d}" for i in range(4) for n in range(3))}
    assert all(row["mask.png_size"] and row["txt_size"] for row in found)
    splits = defaultdict(set)
    for row in found:
        splits[row["group"]].add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    assert Counter(row["label_name"] for row in found) == {"k0": 7, "k1": 6}
    assert verify(tmp_path / "out").damage == ()


def test_budgets_count_all_frames_before_any_is_decoded(raw: Path, tmp_path: Path) -> None:
    options = {**OPTIONS, "frames": "all", "max_errors": "100%"}
    report = shardforge.build(raw, tmp_path / "few", max_frames=4, **options)
    assert report.reasons == {"over_budget": 6}
    assert report.items == 8 + 6 + 2
    report = shardforge.build(raw, tmp_path / "small", max_total_pixels=24 * 18 * FRAMES - 1, **options)
    assert report.reasons == {"over_budget": 6}
    assert shardforge.build(raw, tmp_path / "enough", max_total_pixels=24 * 18 * FRAMES, **options).failed == 0


def test_what_a_header_claims_costs_one_row(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    write_picture(raw / "claims.png", 1)
    data = (raw / "claims.png").read_bytes()
    chunk = b"acTL" + struct.pack(">II", 2**31 - 1, 0)
    claim = struct.pack(">I", 8) + chunk + struct.pack(">I", zlib.crc32(chunk))
    (raw / "claims.png").write_bytes(data[:33] + claim + data[33:])
    write_picture(raw / "fine.png", 2)
    (raw / "empty.gif").write_bytes(b"")
    report = shardforge.build(raw, tmp_path / "out", frames="all", **OPTIONS)
    assert (report.items, report.reasons) == (3, {"over_budget": 1, "empty": 1})


def test_the_command_line_takes_the_policy(raw: Path, tmp_path: Path) -> None:
    assert run("build", raw, tmp_path / "out", "--frames", "every").returncode == 2
    result = run("build", raw, tmp_path / "out", "--frames", "all", "--format", "png", "--dry-run")
    assert result.returncode == 0
    assert "40 items" in result.stderr
