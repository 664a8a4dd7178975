"""pydicom reads every header up to the pixels in a pool; nothing is done with it."""

from __future__ import annotations

from pathlib import Path

import pydicom

from scripts.bench.dicom.work import Task, pooled


def build(source: Path, out: Path, workers: int, task: Task | None) -> None:
    pooled(_read, source, workers)


def _read(path: Path) -> None:
    pydicom.dcmread(path, stop_before_pixels=True)
