"""A virtual environment for each peer, so that none has to put up with another's versions."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PEERS: dict[str, tuple[str, ...]] = {
    "webdataset": ("webdataset", "pillow"),
    "litdata": ("litdata", "pillow"),
    "ffcv": ("ffcv", "pillow"),
    "mosaic": ("mosaicml-streaming", "pillow"),
    "img2dataset": ("img2dataset",),
}
"""Peer → what pip installs for it."""
_FAST = ("torch", "simplejpeg", "opencv-python-headless")
READERS: dict[str, tuple[str, ...]] = {
    "reading-webdataset": ("webdataset", "torchvision", "pillow", *_FAST),
    "reading-litdata": ("litdata", "torchvision", "pillow", *_FAST),
    "reading-mosaic": ("mosaicml-streaming", "torchvision", "pillow", *_FAST),
    "reading-ffcv": ("ffcv", "torch", "pillow"),
    "reading-dali": ("nvidia-dali-cuda120", "numpy"),
    "reading-imagefolder": ("torch", "pillow", "numpy"),
}
"""Peer of the reading benchmark → what pip installs for it."""
_FFCV = "g++ pkg-config libopencv-dev libturbojpeg0-dev"
SYSTEM = {"ffcv": _FFCV, "reading-ffcv": _FFCV}
"""Peer → packages of Debian or Ubuntu that pip needs for it."""


class MissingError(Exception):
    """A contender cannot take part; the text says why."""


def last_line(text: str) -> str:
    """The last line of what a program said that names an error, or else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (named or lines or ["it said nothing"])[-1]


def python_of(peer: str, cache: Path, peers: Mapping[str, Sequence[str]] = PEERS) -> Path:
    """The interpreter of a peer's environment, made on first use.

    Args:
        peers: what pip installs for it.

    Raises:
        MissingError: it cannot be made.
    """
    try:
        return environment(cache / "environments" / peer, peers[peer])
    except MissingError as error:
        needed = f" (it needs: apt-get install {SYSTEM[peer]})" if peer in SYSTEM else ""
        raise MissingError(f"{error}{needed}") from None


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """The interpreter of an environment that holds some packages, made on first use.

    Raises:
        MissingError: it cannot be made.
    """
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), *packages])
        complete.touch()
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingError(last_line(done.stderr or done.stdout))
