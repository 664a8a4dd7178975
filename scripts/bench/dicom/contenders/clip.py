"""The plain script: pydicom decodes, NumPy rescales and clips, OpenCV resizes and writes files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom

from scripts.bench.dicom.work import Task, found, pooled, write


def build(source: Path, out: Path, workers: int, task: Task) -> None:
    pooled(_make, source, workers, out, task)


def stored(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    return found(source, out, task)


def _make(path: Path, out: Path, task: Task) -> None:
    dataset = pydicom.dcmread(path)
    values = dataset.pixel_array * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
    channels = []
    for center, width in task.windows:
        low, high = center - width / 2, center + width / 2
        channels.append((np.clip(values, low, high) - low) / (high - low) * 255)
    write(out / f"{path.stem}.{task.format}", channels, task)
