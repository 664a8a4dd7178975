"""The usual script: pydicom reads, decodes and applies Modality and VOI LUT; OpenCV resizes and writes files."""

from __future__ import annotations

from pathlib import Path

import pydicom
from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut

from scripts.bench.dicom.work import Task, found, pooled, write


def build(source: Path, out: Path, workers: int, task: Task) -> None:
    pooled(_make, source, workers, out, task)


def stored(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    return found(source, out, task)


def _make(path: Path, out: Path, task: Task) -> None:
    dataset = pydicom.dcmread(path)
    values = apply_modality_lut(dataset.pixel_array, dataset)
    # What pydicom's windows go from and to.
    low = float(dataset.RescaleIntercept)
    span = ((1 << dataset.BitsStored) - 1) * float(dataset.RescaleSlope)
    channels = []
    for center, width in task.windows:
        dataset.WindowCenter, dataset.WindowWidth = center, width
        channels.append((apply_voi_lut(values, dataset) - low) / span * 255)
    write(out / f"{path.stem}.{task.format}", channels, task)
