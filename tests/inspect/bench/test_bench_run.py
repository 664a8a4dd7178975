"""``bench`` on real datasets: every kind of image, and nothing of them changed. Nothing here judges time."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil
import pytest

from shardforge.errors import DamagedError, UsageError
from shardforge.inspect.bench.bench import bench
from shardforge.inspect.bench.stages import STAGES, measure_stages
from shardforge.inspect.bench.workload import choose_workload
from tests.datasets import make_dataset
from tests.pictures import command, digest_tree, environment, run

BRIEF = 0.2
COUNT = 12


def int16(number: int) -> Any:
    return np.random.default_rng(number).integers(-1024, 3000, (40, 48, 1)).astype(np.int16)


def int32(number: int) -> Any:
    return np.full((16, 16, 1), number, np.int32)


def unequal(number: int) -> tuple[int, int]:
    return 32 + number % 5, 40


DATASETS: dict[str, dict[str, Any]] = {
    "jpg": {"size": (72, 64)},
    "png": {"format": "png"},
    "webp": {"format": "webp"},
    "npy": {"format": "npy"},
    "int16": {"format": "npy", "channels": 1, "pixels": int16},
    "unequal": {"format": "png", "size": unequal},
}


def dataset(root: Path, **how: Any) -> Path:
    make_dataset(root, {"train": [COUNT // 2, COUNT // 2]}, **how)
    return root


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dataset(tmp_path_factory.mktemp("jpegs"), **DATASETS["jpg"])


def numbers(content: Any) -> Iterator[float]:
    if isinstance(content, dict):
        content = list(content.values())
    if isinstance(content, list):
        for entry in content:
            yield from numbers(entry)
    elif isinstance(content, int | float):
        yield content


@pytest.mark.parametrize(
    ("kind", "crop"), [*((kind, None) for kind in DATASETS), ("jpg", 0), ("int16", 0), ("unequal", 0)]
)
def test_every_kind_of_image_is_measured_and_nothing_is_changed(tmp_path: Path, kind: str, crop: int | None) -> None:
    root = dataset(tmp_path, **DATASETS[kind])
    before, children = digest_tree(root, ()), set(psutil.Process().children())
    report = bench(root, batch_size=4, crop=crop, seconds=BRIEF)
    found = report.to_json()
    assert digest_tree(root, ()) == before
    assert set(psutil.Process().children()) == children
    assert set(found["stages_ms"]) == set(STAGES)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(found))
    assert found["padded"] == (kind == "unequal" and crop == 0)
    assert found["use"] in [{name: entry[name] for name in ("workers", "threads")} for entry in found["settings"]]
    # Decoding takes some time, whatever the machine; without a crop there is nothing to transform.
    assert found["stages_ms"]["decode"]["mean"] > 0
    assert (found["stages_ms"]["transform"]["mean"] > 0) == (crop is None)
    text = "\n".join(report.lines())
    assert all(sample["key"] in text for sample in found["slowest"])
    assert f"threads={found['use']['threads']}, workers={found['use']['workers']}" in text


@pytest.mark.parametrize("kind", DATASETS)
def test_every_sample_of_every_batch_is_measured(tmp_path: Path, kind: str) -> None:
    stages = measure_stages(
        choose_workload(dataset(tmp_path, **DATASETS[kind]), None, 4, 24), BRIEF, lambda line: None
    )
    storage, decode, transform, batches = (stages.seconds[name] for name in STAGES)
    assert len(storage) == len(decode) == len(transform) == stages.samples == 4 * len(batches)
    assert (decode > 0).all()
    # The clock of a thread tells nanoseconds, and each sample was cropped between two looks at it.
    assert (transform > 0).all()


def test_the_slowest_samples_are_named_with_their_bytes_and_shapes(tmp_path: Path) -> None:
    def size(number: int) -> tuple[int, int]:
        return (900, 1000) if number == 7 else (32, 32)

    root = dataset(tmp_path, format="png", size=size)
    stages = measure_stages(choose_workload(root, None, 4, 24), BRIEF, lambda line: None)
    slowest = stages.slowest[0]
    assert (slowest.key, slowest.shape) == ("000000007", (900, 1000, 3))
    # A picture of 900,000 pixels against some of 1,024.
    assert slowest.decode > 5 * stages.slowest[1].decode
    assert len({sample.key for sample in stages.slowest}) == len(stages.slowest) == 5


def test_stages_leave_opencv_as_it_was(jpegs: Path) -> None:
    before = cv2.getNumThreads()
    measure_stages(choose_workload(jpegs, None, 4, None), BRIEF, lambda line: None)
    assert cv2.getNumThreads() == before


def test_crops_are_seven_eighths_of_small_images_and_224_of_large_ones(tmp_path: Path) -> None:
    for side, crop in ((64, 56), (256, 224), (400, 224)):
        root = dataset(tmp_path / str(side), size=(side, side + 8))
        assert choose_workload(root, None, 4, None).crop == crop
    assert choose_workload(root, None, 4, 100).crop == 100


def test_arrays_that_cannot_be_resized_are_read_as_they_are(tmp_path: Path) -> None:
    root = dataset(tmp_path, format="npy", channels=1, pixels=int32)
    assert choose_workload(root, None, 4, None).crop == 0
    with pytest.raises(UsageError, match="int32 are not cropped"):
        choose_workload(root, None, 4, 10)


def test_batches_are_no_larger_than_the_split_and_the_split_is_one_with_samples(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"val": [3], "test": [5]})
    workload = choose_workload(tmp_path, None, 256, None)
    assert (workload.split, workload.batch_size) == ("test", 5)
    assert choose_workload(tmp_path, "val", 2, None).batch_size == 2


@pytest.mark.parametrize(
    "wrong",
    [{"batch_size": 0}, {"crop": -1}, {"seconds": 0}, {"seconds": math.nan}, {"step_ms": -1}, {"split": "no"}],
)
def test_wrong_options_are_usage_errors(jpegs: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        bench(jpegs, **{"seconds": BRIEF, **wrong})


def test_a_step_is_measured_beside_reading_alone(jpegs: Path) -> None:
    report = bench(jpegs, batch_size=4, seconds=BRIEF, step_ms=5)
    assert {speed.step_ms for speed in report.speeds} == {0, 5}
    # Four images in 5 ms, and not faster.
    assert all(speed.rate <= 4 / 0.005 for speed in report.speeds if speed.step_ms)


def damage(tar: Path, count: int = -1) -> None:
    """Spoils the first PNGs of a tar, or all."""
    tar.write_bytes(tar.read_bytes().replace(b"\x89PNG\r\n", b"\x89PNX\r\n", count))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_damaged_samples_are_counted_and_named_and_the_others_measured(tmp_path: Path, batch_size: int) -> None:
    root = dataset(tmp_path, format="png")
    damage(root / "train-000000.tar")
    report = bench(root, batch_size=batch_size, seconds=BRIEF)
    found = report.to_json()
    assert found["unreadable"] == {
        "samples": 6,
        "first": [{"key": f"{number:09d}", "what": "no PNG"} for number in range(5)],
    }
    assert {sample["key"] for sample in found["slowest"]} <= {f"{number:09d}" for number in range(6, 12)}
    assert all(math.isfinite(number) and number >= 0 for number in numbers(found))
    text = report.lines()
    start = text.index("UNREADABLE: 6 of the samples that were read; no figure above counts them")
    assert text[start + 1] == "  000000000  no PNG"
    assert text[start + 6] == "  and 1 more"


def test_damaged_samples_make_exit_1_and_nothing_is_logged(tmp_path: Path) -> None:
    root = dataset(tmp_path, format="png")
    damage(root / "train-000000.tar", 1)
    result = run("bench", root, "--seconds", BRIEF, "--batch-size", 4, "--json")
    assert (result.returncode, result.stderr) == (1, "")
    assert json.loads(result.stdout)["unreadable"] == {
        "samples": 1,
        "first": [{"key": "000000000", "what": "no PNG"}],
    }


def test_a_sound_dataset_has_nothing_unreadable(jpegs: Path) -> None:
    report = bench(jpegs, batch_size=4, seconds=BRIEF)
    assert report.to_json()["unreadable"] == {"samples": 0, "first": []}
    assert "UNREADABLE" not in "\n".join(report.lines())


@pytest.mark.parametrize("crop", [None, 0])
def test_where_all_samples_are_damaged_that_is_said(tmp_path: Path, crop: int | None) -> None:
    root = dataset(tmp_path, format="png")
    for shard in range(2):
        damage(root / f"train-{shard:06d}.tar")
    with pytest.raises(DamagedError, match=r"sample 000000000.*: none of 12 samples can be read; the first: no PNG"):
        bench(root, batch_size=4, crop=crop, seconds=BRIEF)


def test_the_command_prints_text_or_one_object(jpegs: Path) -> None:
    result = run("bench", jpegs, "--seconds", BRIEF, "--batch-size", 4)
    assert (result.returncode, "slowest samples" in result.stdout) == (0, True), result.stderr
    result = run("bench", jpegs, "--seconds", BRIEF, "--batch-size", 4, "--json")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["samples"] == COUNT
    assert run("bench", jpegs, "--seconds", BRIEF, "--batch-size", 4, "--quiet").stdout == ""


@pytest.mark.parametrize(("arguments", "code"), [(["--split", "no"], 2), (["--seconds", "0"], 2), (["--nope"], 2)])
def test_wrong_arguments_are_exit_2(jpegs: Path, arguments: list[str], code: int) -> None:
    result = run("bench", jpegs, *arguments)
    assert result.returncode == code
    assert "Traceback" not in result.stderr


def test_what_is_no_dataset_is_exit_3(tmp_path: Path) -> None:
    assert run("bench", tmp_path).returncode == 3


@pytest.mark.parametrize("at", ["stages", "workers=0", "workers=1"])
def test_an_interrupt_ends_everything_in_one_line(jpegs: Path, at: str) -> None:
    child = subprocess.Popen(
        command("bench", jpegs, "--seconds", 300, "--batch-size", 4)
        if at == "stages"
        else command("bench", jpegs, "--seconds", 8, "--batch-size", 4),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    assert child.stderr is not None
    said = ""
    for line in child.stderr:
        said += line
        if at in line:
            break
    # As the terminal does: to all processes at once.
    os.killpg(child.pid, signal.SIGINT)
    out, rest = child.communicate(timeout=60)
    assert (child.returncode, out) == (130, "")
    assert [line for line in rest.splitlines() if line.startswith("shardforge: ")] == ["shardforge: interrupted"]
    assert "Traceback" not in rest
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)
