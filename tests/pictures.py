"""Small raw datasets that tests make for themselves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent


def picture(seed: int, width: int = 48, height: int = 36) -> npt.NDArray[np.uint8]:
    """A smooth colour picture [height, width, 3], different for every seed."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin((x * (1 + (seed * k) % 5) + y * (1 + (seed + k) % 7) + seed) / 9.0) for k in (1, 2, 3)]
    return np.stack([(wave * 110 + 128).astype(np.uint8) for wave in waves], -1)


def write_picture(path: Path, seed: int, width: int = 48, height: int = 36) -> Path:
    """Writes a picture in the format that the path's extension names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), cv2.cvtColor(picture(seed, width, height), cv2.COLOR_RGB2BGR))
    return path


def class_folders(root: Path, counts: Mapping[str, int], extension: str = "png", **size: int) -> Path:
    """``root/CLASS/0000.png`` …, so many of each class."""
    for number, (name, count) in enumerate(counts.items()):
        for i in range(count):
            write_picture(root / name / f"{i:04d}.{extension}", 1000 * number + i, **size)
    return root


def digest_tree(root: Path, leave_out: Sequence[str] = ("build.json",)) -> dict[str, str]:
    """File → sha256, of everything in a dataset but what is no part of its identity."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name not in leave_out
    }


def environment(**more: str) -> dict[str, str]:
    """The environment of a command under test."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), more.pop("PYTHONPATH", "")]).rstrip(os.pathsep),
        **more,
    }


def command(*arguments: Any) -> list[str]:
    """The command line of ``shardforge`` with these arguments."""
    return [sys.executable, "-m", "shardforge", *map(str, arguments)]


def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs ``shardforge`` to its end; its exit code is for the test to judge."""
    env = options.pop("env", environment())
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=240, env=env, check=False, **options
    )
