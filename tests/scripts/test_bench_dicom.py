"""The DICOM benchmark runs, its contenders do the same work, and none is made up. Nothing here judges time."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pydicom
import pytest

from scripts.bench.dicom.difference import mean_difference
from scripts.bench.dicom.files import SETS, made, modality_values, stored
from scripts.bench.dicom.phantom import OUTSIDE, breast, chest
from scripts.bench.dicom.table import Measured, each, table
from scripts.bench.dicom.work import TASKS
from scripts.bench.table import Run
from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.codecs.dicom.read import read_dicom
from shardforge.codecs.limits import Limits
from tests.pictures import ROOT

COUNT = 10


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "bench_dicom.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.timeout(290)
def test_contenders_make_the_same_pictures_and_who_is_missing_is_reported(tmp_path: Path) -> None:
    here = [word for peer in ("script", "clip", "simpleitk") for word in ("--python", f"{peer}={sys.executable}")]
    done = bench(
        *(
            "--set",
            "native,headers",
            "--task",
            "three",
            "--count",
            COUNT,
            "--repeats",
            1,
            "--cache",
            tmp_path / "cache",
        ),
        *("--json", tmp_path / "json", *here),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "json").read_text())
    results = report["native-three"]["results"]
    assert results.pop("simpleitk")["missing"] == "ModuleNotFoundError: No module named 'SimpleITK'"
    assert set(results) == {"shardforge", "bound", "bound_malloc", "script", "clip"}
    for name, result in results.items():
        assert result["missing"] is None, (name, result)
        assert all(math.isfinite(value) and value > 0 for value in (*result["runs"][0].values(),)), name
        # Lanczos and the mean over an area differ at edges; a wrong window, size or channel is far beyond.
        assert result["difference"] < 2, name
    # The same values, resampler and tables, and a lossless format: nothing but rounding tells them apart.
    assert results["shardforge"]["difference"] == pytest.approx(results["bound"]["difference"], abs=1e-3)
    headers = report["headers-headers"]["results"]
    assert set(headers) == {"scan", "parse", "grouped"}
    assert all(len(result["runs"]) == 1 for result in headers.values())
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(rows) == (2 + 6) + (2 + 3)
    assert len({line.count(" | ") for line in rows}) == 1
    assert not list((tmp_path / "cache").glob("environments/*"))


def test_what_is_unknown_is_refused() -> None:
    for wrong in (
        ("--only", "nobody"),
        ("--set", "tiff"),
        ("--count", "8"),
        ("--python", "bound=python"),
        ("--workers", "0"),
        ("--repeats", "0"),
    ):
        assert bench(*wrong).returncode == 2


@pytest.mark.parametrize("name", SETS)
def test_files_hold_the_same_pixels_in_every_transfer_syntax(name: str, tmp_path: Path) -> None:
    size = (48, 40) if name == "mammogram" else (48, 48)
    files = replace(SETS[name], rows=size[0], columns=size[1], distinct=2)
    folder = made(name, files, 3, tmp_path)
    seen = set()
    for i, path in enumerate(sorted(folder.iterdir())):
        data = path.read_bytes()
        file = read_dicom(data, Limits())
        assert (file.transfer_syntax, file.flags) == (files.syntax, ())
        assert np.array_equal(decode_frame(file, 0).values, stored(files, i % 2)), path.name
        seen.add(pydicom.dcmread(path).SOPInstanceUID)
        if name in ("native", "rle"):
            assert np.array_equal(pydicom.dcmread(path).pixel_array, stored(files, i % 2))
    assert len(seen) == 3
    assert made(name, files, 3, tmp_path) == folder


def test_pictures_are_seeded_and_have_what_such_images_have() -> None:
    slice_values = chest(5, 128)
    assert np.array_equal(slice_values, chest(5, 128))
    assert not np.array_equal(slice_values, chest(6, 128))
    assert slice_values[0, 0] == OUTSIDE
    # Air, lung, soft tissue, bone.
    for low, high in ((-1060, -940), (-920, -800), (0, 90), (700, 1100)):
        assert ((slice_values > low) & (slice_values < high)).any()
    mammogram = breast(0, 128, 104)
    assert (mammogram.min(), mammogram.max() < 4096) == (0, True)
    assert 0.2 < (mammogram == 0).mean() < 0.8


def test_difference_sees_another_window(tmp_path: Path) -> None:
    task, files = TASKS["one"], replace(SETS["native"], rows=256, columns=256)
    ((center, width),) = task.windows
    level = np.clip((modality_values(files, 0) - (center - 0.5)) / (width - 1) + 0.5, 0, 1) * 255
    cv2.imwrite(str(tmp_path / "000000.png"), level.round().astype(np.uint8))
    assert mean_difference(tmp_path, files, task) < 0.5
    cv2.imwrite(str(tmp_path / "000000.png"), (level * 0.9).astype(np.uint8))
    assert mean_difference(tmp_path, files, task) > 5
    cv2.imwrite(str(tmp_path / "000000.png"), level[:128].astype(np.uint8))
    with pytest.raises(ValueError, match="no picture of 256 x 256"):
        mean_difference(tmp_path, files, task)


def test_table_leaves_out_what_starting_costs() -> None:
    def run(seconds: float) -> Run:
        return Run(seconds, 2 * seconds, 100_000_000, 200_000_000, 5_000_000)

    ours = Measured([run(3), run(2), run(30)], start=run(1), difference=0.5)
    slow = Measured([run(11)], start=run(1))
    # 100 images in 2 s, the median of 3 s less 1 s.
    assert each(ours, "seconds", 108, 8) == pytest.approx(0.02)
    _, _, first, second, absent = table({"a": ours, "b": slow, "c": Measured(missing="no")}, 108, 8, "a").splitlines()
    assert first.split(" | ")[1:5] == ["50.0", "1.00×", "40.00", "1.00×"]
    assert second.split(" | ")[1:5] == ["10.0", "5.00×", "200.00", "5.00×"]
    assert absent.split(" | ")[1] == "missing: no"
