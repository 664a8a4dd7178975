"""What ``--cross-check`` and ``--repair`` did is told: in rows, in the closing lines and in ``build.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
import pytest
from pydicom.encaps import encapsulate
from pydicom.uid import JPEGLSLossless

import shardforge
from tests.dicom_builds import all_rows, picture_of
from tests.dicom_made import noise, write_image, write_series

OPTIONS: dict[str, Any] = {
    "kind": "dicom", "format": "npy", "window": "none", "resize": "none", "workers": 1, "quiet": True,
    "max_errors": "100%", "burned_in": "keep",
}  # fmt: skip


@pytest.mark.parametrize("unit", ["slice", "volume"])
def test_the_report_says_who_decoded_twice(tmp_path: Path, key_file: Path, unit: str) -> None:
    write_series(tmp_path / "raw", noise(1, 3, 6, 8), (0.0, 1.0, 2.0))
    report = shardforge.build(
        tmp_path / "raw", tmp_path / "out", key_file=key_file, unit=unit, cross_check=2, **OPTIONS
    )
    made = 1 if unit == "volume" else 2
    second = f"pydicom {pydicom.__version__} native"
    assert f"cross-check: {made} decoded twice, 0 differ; {made} by {second}" in report.lines()
    record = json.loads((tmp_path / "out" / "build.json").read_text())["checks"]
    assert record == {"asked": 2, "agreed": {second: made}, "alone": 0, "disagreed": 0, "repaired": None}
    told = sorted(row["dicom_second_decoder"] or "" for row in all_rows(tmp_path / "out"))
    assert told == [*[""] * (len(told) - made), *[second] * made]


def test_samples_that_nothing_else_decodes_are_counted(tmp_path: Path, key_file: Path) -> None:
    values = noise(1, 6, 8).astype(np.uint16) & 0xFFF
    ds = pydicom.dcmread(write_image(tmp_path / "raw" / "a", values, PixelSpacing=[1, 1]))
    ds.file_meta.TransferSyntaxUID = JPEGLSLossless
    ds.PixelData = encapsulate([imagecodecs.jpegls_encode(values)])
    ds["PixelData"].is_undefined_length = True
    ds.save_as(tmp_path / "raw" / "a")
    report = shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, cross_check=9, **OPTIONS)
    assert report.samples == 1
    assert "cross-check: 0 decoded twice, 0 differ; no second decoder for 1" in report.lines()


def test_repaired_samples_say_so_and_are_counted(tmp_path: Path, key_file: Path) -> None:
    stored = np.array([[0, 100, 3095, 3096]] * 4, np.uint16)
    write_image(tmp_path / "raw" / "a", stored, BitsStored=12, HighBit=11)
    out = tmp_path / "out"
    report = shardforge.build(tmp_path / "raw", out, key_file=key_file, repair="wrapped", **OPTIONS)
    (row,) = all_rows(out)
    assert row["flags"] == ["repaired"]
    assert set(picture_of(out, row).ravel().tolist()) >= {0, 100, 3095, -1000}
    assert "repair: values unwrapped in 1 of the samples" in report.lines()
    assert json.loads((out / "build.json").read_text())["checks"]["repaired"] == 1


def test_a_build_that_asks_for_neither_says_nothing(tmp_path: Path, key_file: Path) -> None:
    write_image(tmp_path / "raw" / "a", noise(1, 4, 4), PixelSpacing=[1, 1])
    report = shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, **OPTIONS)
    assert report.checks is None
    assert "checks" not in json.loads((tmp_path / "out" / "build.json").read_text())
