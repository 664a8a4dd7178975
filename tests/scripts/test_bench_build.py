"""The build benchmark runs, gives finite numbers, and never makes a contender up. Nothing here judges time."""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from scripts import bench_build
from scripts.bench.environments import MissingError, python_of
from scripts.bench.pictures import DISTINCT, SIZES, compose, composed, photographs
from scripts.bench.quality import psnr, ssim
from scripts.bench.table import Result, Run, table
from scripts.bench.work import fitted
from tests.pictures import ROOT, write_picture

COUNT = 12


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "bench_build.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.timeout(280)
def test_bench_measures_who_is_there_and_reports_who_is_missing(tmp_path: Path) -> None:
    done = bench(
        *("--set", "b", "--count", COUNT, "--repeats", 1, "--cache", tmp_path / "cache", "--json", tmp_path / "json"),
        *("--only", "shardforge,bound,bound_malloc,bound_full,webdataset,ffcv,mosaic"),
        *("--python", f"webdataset={sys.executable}", "--python", f"ffcv={sys.executable}"),
        *("--python", f"mosaic={tmp_path / 'no-python'}"),
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "json").read_text())["b"]["results"]
    for name in ("shardforge", "bound", "bound_malloc", "bound_full", "webdataset"):
        (run,), quality = results[name]["runs"], results[name]["quality"]
        assert results[name]["missing"] is None
        assert all(math.isfinite(value) and value > 0 for value in (*run.values(), *quality.values()))
        assert quality["pictures"] == COUNT
        # JPEG of quality 95 keeps photographs above 35 dB; a wrong picture, size or mapping falls far below.
        assert quality["psnr_least"] > 35
    assert results["ffcv"]["missing"] == "ModuleNotFoundError: No module named 'ffcv'"
    assert "no-python" in results["mosaic"]["missing"]
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 7
    assert len({line.count(" | ") for line in rows}) == 1
    assert "| ffcv | missing: ModuleNotFoundError" in done.stdout
    assert not list((tmp_path / "cache").glob("environments/*"))
    # Twelve small pictures are no measurement, and it says so.
    assert "A run of shardforge lasts" in done.stdout


def test_every_run_is_kept(tmp_path: Path) -> None:
    options = argparse.Namespace(repeats=2, workers=1)
    kept: list[tuple[bool, int]] = []

    def keep(results: Mapping[str, Result]) -> None:
        kept.append((results["bound"].start is not None, len(results["bound"].runs)))

    pictures = composed("b", 9, tmp_path)
    bench_build.measure(pictures, {"bound": Path(sys.executable)}, tmp_path / "work", options, keep)
    assert kept == [(True, 0), (True, 1), (True, 2)]


def test_a_peer_that_cannot_be_installed_names_the_packages_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No index: pip fails as it does without a compiler, if for another reason.
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(MissingError, match=r"apt-get install g\+\+ pkg-config libopencv-dev libturbojpeg0-dev"):
        python_of("ffcv", tmp_path)
    assert not (tmp_path / "environments" / "ffcv" / "complete").exists()


def test_bench_takes_a_folder_of_ones_own_and_refuses_one_without_jpegs(tmp_path: Path) -> None:
    for i in range(3):
        write_picture(tmp_path / "src" / "deep" / f"{i}.jpg", i, 320, 300)
    done = bench("--src", tmp_path / "src", "--repeats", 1, "--only", "bound", "--count", 2)
    assert done.returncode == 0, done.stderr
    assert "2 JPEGs of --src" in done.stdout
    (tmp_path / "empty").mkdir()
    refused = bench("--src", tmp_path / "empty", "--only", "bound")
    assert (refused.returncode, refused.stderr.splitlines()[-1][:6]) == (2, "error:")
    assert bench("--only", "nobody").returncode == 2


def test_pictures_of_a_set_are_real_seeded_and_all_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = composed("b", 40, tmp_path)
    files = [path.read_bytes() for path in sorted(folder.iterdir())]
    assert len(set(files)) == 40
    assert [path.read_bytes() for path in sorted(composed("b", 40, tmp_path / "again").iterdir())] == files
    decoded = cv2.imdecode(np.frombuffer(files[0], np.uint8), cv2.IMREAD_COLOR)
    assert (decoded.shape[1], decoded.shape[0]) == SIZES["b"]
    # A larger set than there are pictures holds them repeatedly, evenly and in order.
    monkeypatch.setitem(DISTINCT, "b", 40)
    more = [path.read_bytes() for path in sorted(composed("b", 100, tmp_path).iterdir())]
    assert more == files + files + files[:20]
    # Every pixel of a picture is one of a photograph at its own scale: some mirrored photograph holds it whole.
    crop = compose(0, 500, 375, photographs())
    mirrored = [image[::v, ::h] for image in load_sample_images().images for v in (1, -1) for h in (1, -1)]
    assert any(cv2.matchTemplate(np.ascontiguousarray(m), crop, cv2.TM_SQDIFF).min() < 1e5 for m in mirrored)
    large = compose(0, 1500, 1000, photographs())
    assert large.shape == (1000, 1500, 3)
    assert np.array_equal(large, compose(0, 1500, 1000, photographs()))


def test_fitted_brings_the_short_side_to_256() -> None:
    assert [fitted(500, 375), fitted(3000, 4000), fitted(200, 300)] == [(341, 256), (256, 341), (200, 300)]


def test_psnr_and_ssim_are_what_their_formulas_say() -> None:
    photo = photographs()[0]
    assert (psnr(photo, photo), ssim(photo, photo)) == (99.0, pytest.approx(1))
    brighter = np.clip(photo, 0, 254) + np.uint8(1)
    assert psnr(np.clip(photo, 0, 254), brighter) == pytest.approx(20 * math.log10(255))
    # Two flat pictures: no variance, so that only the luminance term of the formula is left.
    dark, light = (np.full((32, 32, 3), level, np.uint8) for level in (100, 120))
    c1 = (0.01 * 255) ** 2
    assert ssim(dark, light) == pytest.approx((2 * 100 * 120 + c1) / (100**2 + 120**2 + c1))


def test_table_compares_with_shardforge_by_medians() -> None:
    def runs(*seconds: float) -> list[Run]:
        return [Run(s, s, 100_000_000, 200_000_000, 5_000_000) for s in seconds]

    results = {
        "shardforge": Result(runs(2, 1, 30), start=runs(0.5)[0]),
        "slow": Result(runs(8, 7, 9), start=runs(2)[0]),
        "absent": Result(missing="no a|b"),
    }
    _, _, ours, slow, absent = table(results, 108, 8).splitlines()
    assert ours.split(" | ")[1:6] == ["54.0", "1.00×", "66.7", "1.00×", "0.50"]
    # 108 pictures in 8 s against 2 s; 100 in 6 s against 1.5 s.
    assert slow.split(" | ")[1:5] == ["13.5", "4.00×", "16.7", "4.00×"]
    assert absent.split(" | ")[1] == "missing: no a\\|b"
