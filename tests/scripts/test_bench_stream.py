"""The reading benchmark runs, gives finite numbers, and never makes a contender up. Nothing here judges time."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from scripts.bench.environments import READERS, MissingError, python_of
from scripts.bench.launch import answer_of
from scripts.bench.reading.child import _check
from scripts.bench.reading.contestants import CONTENDERS, PEERS
from scripts.bench.reading.prepare import pictures, some
from scripts.bench.reading.table import Result, extras_table, table
from scripts.bench.reading.work import RATIO, augmented, random_box
from scripts.bench.usage import family_cpu_seconds, family_memory
from tests.pictures import ROOT

COUNT = 512


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "bench_stream.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.timeout(300)
def test_bench_measures_who_is_there_and_reports_who_is_missing(tmp_path: Path) -> None:
    done = bench(
        *(
            "--count",
            COUNT,
            "--seconds",
            1,
            "--repeats",
            1,
            "--epochs",
            6,
            "--shards",
            4,
            "--cache",
            tmp_path / "cache",
        ),
        *("--json", tmp_path / "json", "--python", f"ffcv={sys.executable}"),
        *("--only", "shardforge,bound,ffcv,shardforge_npy"),
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "json").read_text())
    for name in ("shardforge", "bound", "shardforge_npy"):
        (run,) = report["results"][name]["runs"]
        assert set(run) == {"first", "rate", "cpu", "peak"}
        assert all(math.isfinite(value) and value > 0 for value in run.values())
    assert report["results"]["ffcv"] == {"runs": [], "missing": "ModuleNotFoundError: No module named 'ffcv'"}
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    # Two tables with a head of two rows, four contenders; a start, a resumption and a growth below a head.
    assert len(rows) == 2 + 3 + 2 + 1 + 2 + 3
    assert "| FFCV | missing: ModuleNotFoundError" in done.stdout
    assert sum("growth in 6 epochs" in line or "first batch of" in line for line in rows) == 2
    assert not list((tmp_path / "cache").glob("environments/*"))
    # The formats are written once, and nothing half-written stays.
    kept = sorted(path.name for path in (tmp_path / "cache" / "reading" / str(COUNT)).iterdir())
    assert {"pictures", "arrays", "shardforge-jpg-pictures", "shardforge-npy-arrays"} <= set(kept)
    assert not [name for name in kept if "." in name]


def test_arguments_that_make_no_sense_are_refused() -> None:
    assert bench("--only", "nobody").returncode == 2
    assert bench("--count", 100).returncode == 2


def test_every_contender_has_a_module_and_every_peer_an_environment() -> None:
    for name, contender in CONTENDERS.items():
        spec = importlib.util.find_spec(f"scripts.bench.reading.contenders.{contender.module}")
        assert spec is not None
        assert spec.origin is not None
        assert f'"{name}"' in Path(spec.origin).read_text()
    assert {f"reading-{peer}" for peer in PEERS} == set(READERS)


def test_a_reader_that_cannot_be_installed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(MissingError, match="libopencv-dev"):
        python_of("reading-ffcv", tmp_path, READERS)
    assert not (tmp_path / "environments" / "reading-ffcv" / "complete").exists()


def test_a_process_that_fails_gives_its_last_words() -> None:
    with pytest.raises(MissingError, match="KeyError: 'nothing'"):
        answer_of(Path(sys.executable), "scripts.bench.reading.child", ["nothing"])


def test_pictures_have_a_short_side_of_256_and_some_are_the_first(tmp_path: Path) -> None:
    folder = pictures(10, tmp_path)
    paths = sorted(folder.iterdir())
    assert len(paths) == 10
    for path in paths:
        assert min(cv2.imread(str(path)).shape[:2]) == 256
    few = some(folder, 3, "few")
    assert [path.read_bytes() for path in sorted(few.iterdir())] == [path.read_bytes() for path in paths[:3]]


def test_batches_that_are_no_photographs_or_of_another_shape_are_refused() -> None:
    draw = np.random.default_rng(0)
    good = draw.integers(0, 256, (256, 224, 224, 3), np.uint8)
    labels = np.arange(256) % 10
    _check(good, labels)
    _check(good.transpose(0, 3, 1, 2), labels)
    for images, classes in (
        (good[:255], labels),
        (good[:, :223], labels),
        (good.astype(np.float32), labels),
        (np.zeros_like(good), labels),
        (good, np.zeros(256, np.int64)),
        (good, np.arange(256)),
    ):
        with pytest.raises(ValueError, match=r"batch of shape|photographs|labels"):
            _check(images, classes)


def test_crops_lie_inside_and_have_the_areas_and_ratios_asked_for() -> None:
    draw = random.Random(0)
    areas = []
    for _ in range(500):
        top, left, height, width = random_box(256, 341, draw)
        assert 0 <= top <= 256 - height
        assert 0 <= left <= 341 - width
        # Sides are rounded to whole pixels.
        assert RATIO[0] * 0.97 < width / height < RATIO[1] * 1.03
        areas.append(height * width / (256 * 341))
    # Uniform from 0.08 to 1, but for the largest, which do not always fit at a ratio other than the picture's own.
    assert 0.07 < min(areas) < 0.1
    assert 0.4 < sum(areas) / len(areas) < 0.56
    assert augmented(np.zeros((256, 341, 3), np.uint8), draw, cv2).shape == (224, 224, 3)


def test_ratios_are_medians_of_the_rounds() -> None:
    def runs(*rates: float) -> list[dict[str, float]]:
        return [{"rate": rate, "first": 0.5, "cpu": 0.25, "peak": 3e8} for rate in rates]

    results = {
        "shardforge": Result(runs(100, 200, 1000)),
        "ffcv": Result(runs(50, 50, 500)),
        "dali": Result(missing="no a|b"),
        "bound_npy": Result(runs(7)),
    }
    _, _, ours, ffcv, dali = table(results, "jpg").splitlines()
    assert ours.split(" | ")[1:4] == ["200", "1.00×", "1.00 … 1.00"]
    # 2, 4 and 2 times as fast.
    assert ffcv.split(" | ")[1:4] == ["50", "2.00×", "2.00 … 4.00"]
    assert dali.split(" | ")[1] == "missing: no a\\|b"
    assert table(results, "npy").splitlines()[2].split(" | ")[1:3] == ["7", ""]
    assert extras_table({"a": {"s": 1234.567}}).splitlines()[2] == "| a | 1,234.57 s |"


def test_processor_time_and_memory_of_the_family_are_counted() -> None:
    before, memory = family_cpu_seconds(), family_memory()
    busy = (
        "held = bytearray(b'x') * 100_000_000; import time\nwhile time.process_time() < 0.3: pass\nprint(); input()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-uc", busy], stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        # Living, not waited for yet.
        assert family_cpu_seconds() - before >= 0.25
        assert family_memory() - memory > 90_000_000
        child.communicate("\n")
    assert family_cpu_seconds() - before >= 0.25
