import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.header_pass import read_headers
from shardforge.sources.dicom.read_header import HeaderSettings
from shardforge.sources.item import SourceFile
from tests.dicom_made import write_image

SETTINGS = HeaderSettings(max_frames=10_000, max_inflated=2**28)


def listed(root: Path) -> list[SourceFile]:
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    return [SourceFile(str(path.relative_to(root)), path.stat().st_size, 0) for path in paths]


def test_processes_read_what_one_process_reads_in_the_same_order(corpus: Path) -> None:
    root = corpus / "dicom"
    files = listed(root) * 6
    told: list[tuple[int, int]] = []
    several = read_headers(root, files, SETTINGS, 2, lambda done, total: told.append((done, total)))
    assert [header.file for header in several] == files
    assert several[: len(files) // 6] == read_headers(root, files[: len(files) // 6], SETTINGS, 1)
    assert told[-1] == (len(files), len(files))
    assert told == sorted(told)


def test_killed_processes_cost_nothing(corpus: Path) -> None:
    root = corpus / "dicom"
    files = listed(root / "series_made_tilt") * 180
    killed: set[int] = set()

    def kill_one(done: int, total: int) -> None:
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if len(killed) < 3 and child.pid not in killed and "header_pass" in " ".join(child.cmdline()):
                    child.kill()
                    killed.add(child.pid)
                    return

    headers = read_headers(root / "series_made_tilt", files, SETTINGS, 2, kill_one)
    assert len(killed) == 3
    assert [header.file for header in headers] == files
    # A file in the works at the moment of a kill is read again, in ever smaller company.
    assert sum(header.problem is Reason.DECODER_CRASH for header in headers) == 0


DIES = """
# Kills a process that opens the file named "last", as often as the file beside this one is long.
import os, pathlib, signal, sys
left = pathlib.Path(__file__).with_name("left")
def killed(event, arguments):
    if event == "open" and str(arguments[0]).endswith("/last") and left.stat().st_size:
        os.truncate(left, left.stat().st_size - 1)
        os.kill(os.getpid(), signal.SIGKILL)
if "header_pass" in " ".join(sys.orig_argv):
    sys.addaudithook(killed)
"""


@pytest.mark.parametrize(("kills", "problem"), [(1, None), (2, Reason.DECODER_CRASH)])
def test_a_file_read_alone_outlives_one_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int, problem: Reason | None
) -> None:
    root, site = tmp_path / "raw", tmp_path / "site"
    path = write_image(root / "last", np.zeros((2, 2), np.int16))
    (root / "image").write_bytes(path.read_bytes())
    site.mkdir()
    (site / "sitecustomize.py").write_text(DIES)
    (site / "left").write_bytes(bytes(kills))
    monkeypatch.setenv("PYTHONPATH", str(site))
    size = path.stat().st_size
    # Chunks of 64 files each, and one of the last file alone.
    files = [*[SourceFile("image", size, 0)] * 64 * 32, SourceFile("last", size, 0)]
    headers = read_headers(root, files, SETTINGS, 2)
    assert (site / "left").stat().st_size == 0
    assert {header.problem for header in headers[:-1]} == {None}
    assert headers[-1].problem is problem


def test_a_missing_file_or_folder_is_a_problem_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    found = read_headers(tmp_path, [SourceFile("gone", 9, 0), SourceFile("folder", 9, 0)], SETTINGS, 1)
    assert [header.problem for header in found] == [Reason.MISSING_FILE, Reason.UNREADABLE]


def test_the_source_never_imports_torch() -> None:
    code = "import shardforge.sources.dicom.scan, sys; sys.exit('torch' in sys.modules or 'cv2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=Path(__file__).parents[3])
    assert done.returncode == 0
