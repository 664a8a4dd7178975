"""How far the pictures that a contender stored are from the ideal: shown by formula in full size, then averaged."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from scripts.bench.dicom.files import FileSet, modality_values
from scripts.bench.dicom.work import Task


def mean_difference(stored: Path, files: FileSet, task: Task) -> float:
    """Mean absolute difference in grey levels, over the pictures in ``stored``.

    Raises:
        ValueError: there are none, or one has not the size that was asked for.
    """
    found = [_compare(path, files, task) for path in sorted(stored.iterdir())]
    if not found:
        raise ValueError("nothing was stored")
    return float(np.mean(found))


def _compare(path: Path, files: FileSet, task: Task) -> float:
    values = modality_values(files, int(path.stem) % files.distinct)
    height, width = task.fitted(*values.shape)
    planes = []
    for center, wide in task.windows:
        # PS3.3 C.11.2.1.2.1
        level = np.clip((values - (center - 0.5)) / (wide - 1) + 0.5, 0, 1) * 255
        planes.append(cv2.resize(level, (width, height), interpolation=cv2.INTER_AREA))
    flags = cv2.IMREAD_COLOR if len(planes) == 3 else cv2.IMREAD_GRAYSCALE
    picture = cv2.imread(str(path), flags)
    if picture is None or picture.shape[:2] != (height, width):
        raise ValueError(f"{path.name} is no picture of {width} x {height}")
    pixels = picture.reshape(height, width, -1)[:, :, ::-1]
    return float(np.abs(pixels - np.stack(planes, axis=2)).mean())
