"""Fixtures that write small DICOM files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset

CT = "1.2.840.10008.5.1.4.1.1.2"

WriteDicom = Callable[..., Path]


def dataset(**values: Any) -> Dataset:
    """A 4×4 CT slice with these attributes; None leaves one out."""
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = values.pop("TransferSyntaxUID", pydicom.uid.ExplicitVRLittleEndian)
    given = {
        "SOPClassUID": CT,
        "SOPInstanceUID": "1.2.3.9",
        "SeriesInstanceUID": "1.2.3.2",
        "StudyInstanceUID": "1.2.3.1",
        "PatientID": "P",
        "Modality": "CT",
        "ImageOrientationPatient": [1, 0, 0, 0, 1, 0],
        "ImagePositionPatient": [0, 0, 0],
        "PixelSpacing": [0.5, 0.25],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": 4,
        "Columns": 4,
        "BitsAllocated": 16,
        "BitsStored": 12,
        "HighBit": 11,
        "PixelRepresentation": 0,
        "PixelData": np.arange(16, dtype="<u2").tobytes(),
        **values,
    }
    for name, value in given.items():
        if value is not None:
            setattr(ds, name, value)
    return ds


@pytest.fixture
def write(source: Path) -> WriteDicom:
    """Writes a file below the source folder: a name, and the attributes that differ from a plain CT slice."""

    def _write(name: str, **values: Any) -> Path:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        ds = dataset(**values)
        ds.file_meta.MediaStorageSOPClassUID = ds.get("SOPClassUID", "1.2.3")
        ds.file_meta.MediaStorageSOPInstanceUID = ds.get("SOPInstanceUID", "1.2.3.9")
        ds.save_as(path, enforce_file_format=True)
        return path

    return _write


@pytest.fixture
def write_series(write: WriteDicom) -> Callable[..., list[Path]]:
    """Writes one slice per z (mm), named so that names and instance numbers run against z."""

    def _write_series(z: list[float], folder: str = "", **values: Any) -> list[Path]:
        count = len(z)
        return [
            write(
                f"{folder}{count - i:03d}",
                **{
                    "SOPInstanceUID": f"1.2.3.9.{i}",
                    "ImagePositionPatient": [0, 0, position],
                    "InstanceNumber": count - i,
                    "PixelData": np.full(16, i, "<u2").tobytes(),
                    **values,
                },
            )
            for i, position in enumerate(z)
        ]

    return _write_series
