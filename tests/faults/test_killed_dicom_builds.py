"""DICOM builds that are killed, files that kill their decoder, and files that ask for more than there is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import IO

import psutil
import pydicom
import pytest

from shardforge.shards.verify import verify
from tests.dicom_builds import all_rows, samples
from tests.dicom_made import noise, write_image
from tests.pictures import command, digest_tree, environment, run

OPTIONS = ("--kind", "dicom", "--format", "png", "--window", "40/400", "--size", "32", "--shard-samples", "5",
           "--max-errors", "100%")  # fmt: skip


pytestmark = pytest.mark.xdist_group("killed DICOM builds")


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


FAULTY_DECODER = """
# Lets a decoder of lossless JPEG that reads through null pointers take the place of the sound one.
import imagecodecs

imagecodecs.jpeg8_decode = lambda stream, **options: imagecodecs.ljpeg_decode(stream)
"""


def without_tables(data: bytes) -> bytes:
    """A lossless JPEG in DICOM whose Huffman tables became a comment: legal segments, and nothing to decode with."""
    at = data.index(b"\xff\xc3")
    tables = data.index(b"\xff\xc4", at)
    return data[:tables] + b"\xff\xfe" + data[tables + 2 :]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_kills_its_decoder_costs_one_row(
    corpus: Path, raw: Path, key: Path, tmp_path: Path, workers: int
) -> None:
    source = tmp_path / "raw"
    source.mkdir()
    for number in range(8):
        shutil.copy(raw / f"{number:02d}", source)
    lossless = corpus / "dicom" / "ts" / "made_jpeg_lossless_modulo.dcm"
    shutil.copy(lossless, source / "sound")
    uid = str(pydicom.dcmread(lossless).SOPInstanceUID).encode()
    other = uid[:-1] + (b"1" if uid[-1:] != b"1" else b"2")
    (source / "deadly").write_bytes(without_tables(lossless.read_bytes()).replace(uid, other))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(FAULTY_DECODER)
    env = environment(PYTHONPATH=str(tmp_path / "site"))
    options = (*OPTIONS, "--keep-identifiers", "--burned-in", "keep", "--workers", workers)
    result = run("build", source, tmp_path / "out", *options, env=env)
    assert result.returncode == 1, result.stderr
    rows = {row["source"]: row for row in all_rows(tmp_path / "out")}
    assert len(rows) == 10
    assert rows.pop("deadly")["reason"] == "decoder_crash"
    assert {row["status"] for row in rows.values()} == {"success"}
    assert verify(tmp_path / "out").damage == ()
    assert "Traceback" not in result.stderr


def test_bombs_and_huge_headers_cost_their_own_rows(corpus: Path, raw: Path, tmp_path: Path) -> None:
    source = tmp_path / "raw"
    source.mkdir()
    for number in range(4):
        shutil.copy(raw / f"{number:02d}", source)
    bombs = ("made_deflate_bomb_128MiB.dcm", "made_huge_rows_cols.dcm", "made_huge_frame_count.dcm")
    for name in bombs:
        shutil.copy(corpus / "dicom" / "broken" / name, source)
    (tmp_path / "tight.yaml").write_text("run: {memory: 256MiB}\nlimits: {source_bytes: 32MiB}\n")
    options = (*OPTIONS, "--keep-identifiers", "--workers", 2)
    result = run("build", source, tmp_path / "out", "--recipe", tmp_path / "tight.yaml", *options)
    assert result.returncode == 1, result.stderr
    rows = {row["source"]: row for row in all_rows(tmp_path / "out")}
    assert {rows[name]["reason"] for name in bombs} <= {"over_budget", "truncated"}
    assert len(list(samples(tmp_path / "out"))) == 4
    # Where the budget allows the bomb, the worker's memory decides.
    (tmp_path / "loose.yaml").write_text("run: {memory: 256MiB}\n")
    result = run("build", source, tmp_path / "loose", "--recipe", tmp_path / "loose.yaml", *options)
    assert result.returncode == 1, result.stderr
    rows = {row["source"]: row for row in all_rows(tmp_path / "loose")}
    assert rows[bombs[0]]["reason"] in ("out_of_memory", "over_budget", None)
    assert sum(row["status"] == "success" for row in rows.values()) >= 4
    assert verify(tmp_path / "loose").damage == ()


def test_one_broken_file_among_many_costs_one_row(raw: Path, key: Path, tmp_path: Path) -> None:
    shutil.copytree(raw, tmp_path / "raw", ignore=shutil.ignore_patterns("cut*"))
    broken = tmp_path / "raw" / "17"
    broken.write_bytes(broken.read_bytes()[:-1000])
    result = run("build", tmp_path / "raw", tmp_path / "out", *OPTIONS, "--key-file", key, "--workers", 1)
    assert result.returncode == 1
    rows = all_rows(tmp_path / "out")
    assert len(rows) == 40
    assert [row["reason"] for row in rows if row["status"] != "success"] == ["truncated"]
