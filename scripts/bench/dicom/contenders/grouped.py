"""The usual header pass: pydicom reads in a pool what grouping and sorting by position need."""

from __future__ import annotations

from pathlib import Path

import pydicom

from scripts.bench.dicom.work import Task, pooled

_TAGS = [
    *("SOPInstanceUID", "StudyInstanceUID", "SeriesInstanceUID", "PatientID", "Modality", "Rows", "Columns"),
    *("ImagePositionPatient", "ImageOrientationPatient", "InstanceNumber", "PixelSpacing"),
]


def build(source: Path, out: Path, workers: int, task: Task | None) -> None:
    series: dict[str, list[tuple[float, str]]] = {}
    for uid, place, name in pooled(_read, source, workers):
        series.setdefault(uid, []).append((place, name))
    for slices in series.values():
        slices.sort()


def _read(path: Path) -> tuple[str, float, str]:
    header = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=_TAGS)
    for tag in _TAGS:
        header.get(tag)
    return str(header.SeriesInstanceUID), float(header.ImagePositionPatient[2]), path.name
