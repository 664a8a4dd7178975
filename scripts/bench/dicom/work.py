"""What every contender of the DICOM benchmark has to do with an image."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

CHECKED = 16
"""Images of a set whose levels are compared with the ideal: the first ones."""
QUALITY = 95


@dataclass(frozen=True)
class Task:
    """Which picture is made of an image: windows as channels, each LINEAR (PS3.3 C.11.2.1.2.1).

    Attributes:
        windows: center and width of one window (grey), or three (RGB).
        size: the longer side of the result, in pixels; images are not enlarged.
        format: ``png``, or ``jpg`` of quality 95.
    """

    title: str
    windows: tuple[tuple[float, float], ...]
    size: int
    format: str

    def fitted(self, rows: int, columns: int) -> tuple[int, int]:
        """Height and width of the picture of an image."""
        longer = max(rows, columns, self.size)
        height, width = (max(1, (2 * side * self.size + longer) // (2 * longer)) for side in (rows, columns))
        return height, width


TASKS = {
    "three": Task("three windows → 256² PNG", ((-600, 1500), (100, 700), (40, 400)), 256, "png"),
    "one": Task("one window → 256² JPEG", ((-600, 1500),), 256, "jpg"),
    "mammogram": Task("one window → PNG, longer side 1024", ((2048, 4096),), 1024, "png"),
}


def sources(folder: Path) -> list[Path]:
    """The files of a set, in order."""
    return sorted(folder.glob("*.dcm"))


def pooled(
    make: Callable[..., Any], source: Path, workers: int, *arguments: object, start: str | None = None
) -> list[Any]:
    """What ``make(path, *arguments)`` returns of each file, from a pool of processes; ``start`` is how they start."""
    with multiprocessing.get_context(start).Pool(workers) as pool:
        return pool.map(partial(_spread, make, arguments), sources(source), 4)


def _spread(make: Callable[..., Any], arguments: tuple[object, ...], path: Path) -> Any:
    return make(path, *arguments)


def write(path: Path, channels: Sequence[Any], task: Task) -> None:
    """Brings windowed channels [H, W] of levels 0..255 to size with OpenCV and writes a picture, as scripts do."""
    import cv2
    import numpy as np

    height, width = task.fitted(*channels[0].shape)
    pixels = np.stack([channel.astype(np.uint8) for channel in channels], axis=2)
    small = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    quality = [cv2.IMWRITE_JPEG_QUALITY, QUALITY] if task.format == "jpg" else []
    # OpenCV writes the third channel as red.
    if not cv2.imwrite(str(path), small[:, :, ::-1] if len(channels) == 3 else small, quality):
        raise OSError(f"{path} cannot be written")


def found(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    """The first pictures that were written to files of their own, by the names of their sources."""
    return {path.stem: (out / f"{path.stem}.{task.format}").read_bytes() for path in sources(source)[:CHECKED]}
