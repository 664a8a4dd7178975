"""The header pass of this project: every file listed, its header read and judged, slices grouped and ordered."""

from __future__ import annotations

from pathlib import Path

from scripts.bench.dicom.work import Task, sources
from shardforge.sources.dicom.options import DicomSourceOptions
from shardforge.sources.dicom.scan import scan_dicom


def build(source: Path, out: Path, workers: int, task: Task | None) -> None:
    listed = scan_dicom(source, DicomSourceOptions(workers=workers), lambda line: None)
    good = sum(item.problem is None for item in listed.items)
    if good != len(sources(source)):
        raise ValueError(f"{good} images listed")
