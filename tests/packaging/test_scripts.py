"""The shell scripts parse, pass shellcheck where it is installed, and the small ones do what they say."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from scripts.make_digits import write_digits

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_script_parses(script: Path) -> None:
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed; CI installs it")
def test_scripts_pass_shellcheck() -> None:
    done = subprocess.run(
        ["shellcheck", "--external-sources", *SCRIPTS], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout


def test_ci_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_ci_fails_without_the_corpus(tmp_path: Path) -> None:
    environment = {**os.environ, "SHARDFORGE_CORPUS": str(tmp_path)}
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "run"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr


def digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.png")):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def test_digits_hold_every_scan_in_its_class_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "make_digits.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    digits = load_digits()
    paths = sorted(tmp_path.rglob("*.png"), key=lambda path: path.stem)
    assert [int(path.parent.name) for path in paths] == digits.target.tolist()
    for path, levels in zip(paths, digits.images, strict=True):
        with Image.open(path) as image:
            assert (image.mode, image.size) == ("L", (8, 8))
            assert np.array_equal(np.rint(np.asarray(image, dtype=float) * 16 / 255), levels)


def test_digits_are_the_same_bytes_every_time_and_damage_is_repaired(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    assert write_digits(first) == write_digits(second) == (1797, 1797)
    assert digest(second) == digest(first)
    victim = min((second / "3").iterdir())
    victim.write_bytes(victim.read_bytes()[:20])
    assert write_digits(second) == (1797, 1)
    assert write_digits(second) == (1797, 0)
    assert digest(second) == digest(first)


def write_stub(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_setup_says_when_python_is_too_old(tmp_path: Path) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    write_stub(tmp_path / "python3", '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
    command = [str(tmp_path / "bash"), str(ROOT / "scripts" / "setup.sh")]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed; found Python 3.9.2" in done.stderr


def test_without_apt_the_missing_packages_are_named(tmp_path: Path) -> None:
    code = f"source {shlex.quote(str(ROOT / 'scripts' / 'packages.sh'))}; ensure_packages libjpeg-dev zlib1g-dev"
    command = [str(shutil.which("bash")), "-c", code]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "libjpeg-dev zlib1g-dev" in done.stderr
