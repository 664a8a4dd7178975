"""DICOM builds that are killed, files that kill their decoder, and files that ask for more than there is."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import IO

import psutil
import pytest

from tests.dicom_made import noise, write_image
from tests.pictures import command, digest_tree, environment, run

OPTIONS = ("--kind", "dicom", "--format", "png", "--window", "40/400", "--size", "32", "--shard-samples", "5",
           "--max-errors", "100%")  # fmt: skip


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty slices, and six broken files, each of which makes the build say so when it comes to it."""
    folder = tmp_path_factory.mktemp("raw")
    for number in range(40):
        write_image(
            folder / f"{number:02d}",
            noise(number, 96, 96),
            SOPInstanceUID=f"1.2.{number}",
            SeriesInstanceUID=f"1.2.{number % 4}",
            PatientID=f"P{number % 4}",
            ImagePositionPatient=[0, 0, number],
        )
    for number in range(6):
        path = write_image(folder / f"cut{number}", noise(number, 96, 96), SOPInstanceUID=f"1.3.{number}")
        path.write_bytes(path.read_bytes()[: -100 - number])
    return folder


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("key") / "identity.key"


@pytest.fixture(scope="module")
def undisturbed(raw: Path, key: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert run("build", raw, out, *OPTIONS, "--key-file", key, "--workers", 1).returncode == 1
    return digest_tree(out)


@pytest.mark.parametrize("failures", [1, 4])
def test_killed_in_the_middle_it_resumes_to_the_same_bytes(
    raw: Path, key: Path, undisturbed: dict[str, str], tmp_path: Path, failures: int
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(
        command("build", raw, out, *OPTIONS, "--key-file", key, "--workers", 2),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    stderr: IO[str] | None = process.stderr
    assert stderr is not None
    left = failures
    for line in stderr:
        left -= line.startswith("failed:")
        if left <= 0:
            break
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    psutil.wait_procs(workers, timeout=10)
    assert not (out / "dataset.json").exists()
    result = run("build", raw, out, *OPTIONS, "--key-file", key, "--workers", 1)
    assert result.returncode == 1, result.stderr
    assert digest_tree(out) == undisturbed
