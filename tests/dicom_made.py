"""Small DICOM files made of arrays, with positions that say where everything is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence as Items
from pydicom.uid import CTImageStorage, EnhancedCTImageStorage, ExplicitVRLittleEndian

ROOT_UID = "1.2.826.0.1.3680043.8.498.77"
ROW, COLUMN = (0.8, 0.6, 0.0), (-0.6, 0.8, 0.0)
"""Directions in the patient; their normal is +z."""


def write_image(path: Path, values: NDArray[Any], **attributes: Any) -> Path:
    """One image, [H, W] int16 (or uint16, uint8), as it is stored; an attribute of None is left out."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _saved(path, _dataset(values, {"SOPClassUID": CTImageStorage, **attributes}))
    return path


def write_series(
    folder: Path, volume: NDArray[Any], z: Sequence[float], *, series: str = "1", **attributes: Any
) -> list[Path]:
    """One file per slice [Z, H, W]; names and instance numbers run against z (mm). Returns them in order of z."""
    count = len(z)
    return [
        write_image(
            folder / f"{count - i:03d}",
            volume[i],
            SOPInstanceUID=f"{ROOT_UID}.{series}.{i + 1}",
            SeriesInstanceUID=f"{ROOT_UID}.{series}",
            ImagePositionPatient=[10.0, -20.0, position],
            InstanceNumber=count - i,
            **attributes,
        )
        for i, position in enumerate(z)
    ]


def write_enhanced(
    path: Path, volume: NDArray[Any], z: Sequence[float], order: Sequence[int], **attributes: Any
) -> Path:
    """All slices [Z, H, W] in one enhanced object, whose frame ``n`` is slice ``order[n]``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ds = _dataset(volume[list(order)], {"SOPClassUID": EnhancedCTImageStorage, **attributes})
    ds.NumberOfFrames = len(order)
    del ds.ImagePositionPatient, ds.ImageOrientationPatient, ds.PixelSpacing
    shared, measures, orientation = Dataset(), Dataset(), Dataset()
    measures.PixelSpacing = [0.5, 0.25]
    orientation.ImageOrientationPatient = [*ROW, *COLUMN]
    shared.PixelMeasuresSequence, shared.PlaneOrientationSequence = Items([measures]), Items([orientation])
    ds.SharedFunctionalGroupsSequence = Items([shared])
    frames = []
    for slice_number in order:
        frame, position = Dataset(), Dataset()
        position.ImagePositionPatient = [10.0, -20.0, z[slice_number]]
        frame.PlanePositionSequence = Items([position])
        frames.append(frame)
    ds.PerFrameFunctionalGroupsSequence = Items(frames)
    _saved(path, ds)
    return path


def _dataset(values: NDArray[Any], attributes: dict[str, Any]) -> FileDataset:
    ds = FileDataset("", {}, file_meta=FileMetaDataset(), preamble=b"\0" * 128)
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    bits = values.dtype.itemsize * 8
    given = {
        "SOPInstanceUID": f"{ROOT_UID}.9",
        "SeriesInstanceUID": f"{ROOT_UID}.1",
        "StudyInstanceUID": f"{ROOT_UID}.0",
        "PatientID": "made",
        "Modality": "CT",
        "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
        "ImageOrientationPatient": [*ROW, *COLUMN],
        "ImagePositionPatient": [10.0, -20.0, 0.0],
        "PixelSpacing": [0.5, 0.25],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "Rows": values.shape[-2],
        "Columns": values.shape[-1],
        "BitsAllocated": bits,
        "BitsStored": bits,
        "HighBit": bits - 1,
        "PixelRepresentation": int(values.dtype.kind == "i"),
        "RescaleSlope": 1,
        "RescaleIntercept": 0,
        "PixelData": values.astype(values.dtype.newbyteorder("<")).tobytes(),
        **attributes,
    }
    for name, value in given.items():
        if value is not None:
            setattr(ds, name, value)
    return ds


def _saved(path: Path, ds: FileDataset) -> None:
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.save_as(path, enforce_file_format=True)


def noise(seed: int, *shape: int) -> NDArray[np.int16]:
    """Values from -1000 to 2000, different everywhere."""
    return np.random.default_rng(seed).integers(-1000, 2000, shape, dtype=np.int16)
