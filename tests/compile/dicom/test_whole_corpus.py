"""One build of every DICOM file of the corpus: each is accounted for, and is what others found it to be."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from tests.codecs.dicom.corpus_files import EXPECTED, FLAGS, PICTURES, REASONS, REFUSED
from tests.dicom_builds import all_rows, by_source, picture_of

pytestmark = pytest.mark.xdist_group("whole DICOM corpus")

BURNED_IN = {"burned_in": "high", "burned_in_suspect": "unknown"}
DOSES = {"dicom/multiframe/rtdose.dcm", "dicom/multiframe/rtdose_expb_1frame.dcm", "dicom/multiframe/rtdose_rle.dcm",
         "dicom/broken/badVR.dcm"}  # fmt: skip
"""Dose grids are measurements, not pictures; one of them has a broken header besides."""
AGAIN = "duplicate_slice"
"""The corpus has many of its images in several forms, all but one of which are filtered."""


@pytest.fixture(scope="module")
def found(whole: Path) -> dict[str, list[dict[str, Any]]]:
    return {f"dicom/{source}": rows for source, rows in by_source(whole).items()}


def test_every_file_is_a_row_a_mask_or_named_as_unknown(
    corpus: Path, whole: Path, found: dict[str, list[dict[str, Any]]]
) -> None:
    files = {path.relative_to(corpus).as_posix() for path in (corpus / "dicom").rglob("*") if path.is_file()}
    unknown = {f"dicom/{file['path']}" for file in json.loads((whole / "build.json").read_text())["unknown_files"]}
    segmentations = {name for name, expect in EXPECTED.items() if expect.get("route") == "seg"}
    assert unknown == {"dicom/broken/zipMR.gz"}
    assert files == found.keys() | unknown | segmentations
    assert not found.keys() & (unknown | segmentations)


def test_frames_are_rows_and_the_statuses_add_up(
    whole: Path, whole_build: subprocess.CompletedProcess[str], found: dict[str, list[dict[str, Any]]]
) -> None:
    for name in PICTURES:
        agreed = EXPECTED[name].get("stored")
        if name in found and name not in DOSES and agreed is not None:
            frames = agreed["shape"][0]
            assert [row["frame"] or 0 for row in found[name]] == list(range(frames)), name
    count = Counter(row["status"] for row in all_rows(whole))
    train = Manifest.read(whole).splits["train"]
    told = (train.samples, train.failed, train.filtered, train.skipped)
    assert told == tuple(count[status] for status in ("success", "failed", "filtered", "skipped"))
    balance = "{:,} items = {:,} samples + {:,} failed + {:,} filtered + {:,} skipped"
    assert balance.format(sum(told), *told) in whole_build.stdout
    assert whole_build.returncode == 1
    assert "Traceback" not in whole_build.stderr


def test_the_dataset_is_whole(whole: Path) -> None:
    assert verify(whole).damage == ()


def test_what_is_broken_or_no_picture_has_the_right_reason(found: dict[str, list[dict[str, Any]]]) -> None:
    for name in set(REFUSED) & found.keys() - DOSES:
        expected = EXPECTED[name]
        rows = found[name][expected.get("whole_frames", 0) :]
        if expected["reason"] == "over_budget" and "when" in expected:
            continue  # a bomb of 128 MiB, which the default budget allows
        due = {str(REASONS[word]) for word in expected["reason"].split("|")} | {AGAIN}
        assert {row["reason"] for row in rows} <= due, name
    for name in DOSES:
        assert [(row["status"], row["reason"]) for row in found[name]] == [("skipped", "not_a_picture")]


def test_every_picture_is_a_sample_and_nothing_else_fails(found: dict[str, list[dict[str, Any]]]) -> None:
    for name in set(PICTURES) & found.keys() - DOSES:
        assert {row["reason"] for row in found[name]} <= {None, AGAIN}, name
    whole_frames = [name for name in REFUSED if "whole_frames" in EXPECTED[name]]
    assert len(whole_frames) == 2
    for name in whole_frames:
        count = EXPECTED[name]["whole_frames"]
        assert all(row["status"] == "success" for row in found[name][:count])


def test_what_has_to_be_noticed_is_in_the_rows(found: dict[str, list[dict[str, Any]]]) -> None:
    noticed = 0
    for name, rows in found.items():
        for word in EXPECTED[name].get("warn", ()):
            for row in rows:
                if row["reason"] == AGAIN:
                    continue
                noticed += 1
                if word in BURNED_IN:
                    assert row["dicom_burned_in"] == BURNED_IN[word], name
                else:
                    assert FLAGS[word] in row["flags"], (name, word)
    assert noticed > 20


def test_stored_pictures_are_those_agreed_on(whole: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    compared = 0
    for name in PICTURES:
        expected = EXPECTED[name]
        for shown in expected.get("display8", ()):
            row = found[name][shown["frame"]]
            window = shown["voi"]["source"] in ("window", "shared_window", "per_frame_window", "voi_lut")
            same_size = row["scale_x"] == row["scale_y"] == 1
            if row["status"] != "success" or not window or not same_size:
                continue
            pixels = picture_of(whole, row)
            assert (pixels[:, :, 0] == pixels[:, :, 1]).all()
            assert (pixels[:, :, 0] == pixels[:, :, 2]).all()
            grey = np.ascontiguousarray(pixels[:, :, 0])
            if expected["stored"].get("lossy"):
                assert all(abs(int(grey[at[0], at[1]]) - at[4]) <= 1 for at in shown["at"]), name
            else:
                assert hashlib.sha256(grey.tobytes()).hexdigest() == shown["sha256_u8"], name
            compared += 1
    assert compared > 120


def test_stored_colours_are_those_agreed_on(whole: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    compared = 0
    for name in PICTURES:
        expected = EXPECTED[name].get("rgb")
        rows = found.get(name, ())
        usable = [row["status"] == "success" and row["scale_x"] == row["scale_y"] for row in rows]
        if expected is None or not rows or not all(usable):
            continue
        rgb = np.stack([picture_of(whole, row) for row in rows])
        assert list(rgb.shape) == expected["shape"], name
        for number, row, column, colour in expected["at"]:
            assert np.abs(rgb[number, row, column].astype(int) - colour).max() <= expected["tol"], name
        if "sha256" in expected:
            assert hashlib.sha256(rgb.tobytes()).hexdigest() == expected["sha256"], name
        compared += 1
    assert compared > 40
