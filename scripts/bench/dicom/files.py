"""The DICOM files that the benchmark builds from, made on first use: the same on every machine but for the bytes that
an encoder chooses."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
from numpy.typing import NDArray
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import CTImageStorage, DigitalMammographyXRayImageStorageForPresentation, generate_uid

from scripts.bench.dicom.phantom import breast, chest

_SLICES = 40
"""In one series."""
_INTERCEPT = -1024
_VERSION = 1


@dataclass(frozen=True)
class FileSet:
    """Files of one kind.

    Attributes:
        title: for the reader of a table.
        syntax: the transfer syntax.
        rows, columns: of an image.
        count: of files, by default.
        distinct: different pictures; beyond them pixels repeat, in other series.
        encode: stored values, uint16 [rows, columns] of 12 bits, to a frame.
    """

    title: str
    syntax: str
    encode: Callable[..., bytes | bytearray]
    rows: int = 512
    columns: int = 512
    count: int = 1000
    distinct: int = 240

    @property
    def is_ct(self) -> bool:
        return self.rows == self.columns


def rle(values: NDArray[np.uint16]) -> bytes:
    """An RLE frame (PS3.5 G): the high bytes, then the low bytes, no run beyond a row."""
    planes = [np.ascontiguousarray((values >> shift).astype(np.uint8)) for shift in (8, 0)]
    segments = [b"".join(imagecodecs.packbits_encode(row.tobytes()) for row in plane) for plane in planes]
    padded = [segment + bytes(len(segment) % 2) for segment in segments]
    offsets = np.zeros(16, "<u4")
    offsets[:3] = len(padded), 64, 64 + len(padded[0])
    return offsets.tobytes() + b"".join(padded)


def _lossless_jpeg(values: NDArray[np.uint16]) -> bytes:
    return bytes(imagecodecs.jpeg8_encode(values, lossless=True, predictor=1, bitspersample=12))


SETS: dict[str, FileSet] = {
    "native": FileSet("uncompressed", "1.2.840.10008.1.2.1", lambda values: values.astype("<u2").tobytes()),
    "rle": FileSet("RLE", "1.2.840.10008.1.2.5", rle),
    "jpegll": FileSet("JPEG lossless, first order", "1.2.840.10008.1.2.4.70", _lossless_jpeg),
    "jpegls": FileSet("JPEG-LS", "1.2.840.10008.1.2.4.80", imagecodecs.jpegls_encode, count=600),
    "j2k": FileSet(
        "JPEG 2000, lossless",
        "1.2.840.10008.1.2.4.90",
        partial(imagecodecs.jpeg2k_encode, level=0, codecformat="j2k", reversible=True),
        count=400,
    ),
    "htj2k": FileSet("HTJ2K, lossless", "1.2.840.10008.1.2.4.201", imagecodecs.htj2k_encode, count=600),
    "mammogram": FileSet(
        "JPEG lossless, first order", "1.2.840.10008.1.2.4.70", _lossless_jpeg, 4096, 3328, count=40, distinct=8
    ),
}
SMALL = FileSet("64 x 64", "1.2.840.10008.1.2.1", SETS["native"].encode, 64, 64, count=8000, distinct=240)
"""For the header pass: little but headers."""


def stored(files: FileSet, number: int) -> NDArray[np.uint16]:
    """The stored values of picture number so-and-so, uint16 [rows, columns] of 12 bits."""
    if files.is_ct:
        return (chest(number, files.rows) - _INTERCEPT).astype(np.uint16)
    return breast(number, files.rows, files.columns)


def modality_values(files: FileSet, number: int) -> NDArray[np.float64]:
    """What the stored values mean: Hounsfield units of CT, of mammograms the values themselves."""
    return stored(files, number) + np.float64(_INTERCEPT if files.is_ct else 0)


def made(name: str, files: FileSet, count: int, cache: Path) -> Path:
    """A folder of so many files ``000000.dcm`` …, made on first use; file i shows picture ``i % distinct``."""
    folder = cache / "dicom" / f"{name}-{files.rows}x{files.columns}-{count}-{_VERSION}"
    if folder.is_dir():
        return folder
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    making.mkdir(parents=True)
    frames: list[bytes | bytearray] = []
    for i in range(count):
        if i < files.distinct:
            frames.append(files.encode(stored(files, i)))
        _write(making / f"{i:06d}.dcm", name, files, i, frames[i % files.distinct])
    making.rename(folder)
    return folder


def _write(path: Path, name: str, files: FileSet, i: int, frame: bytes | bytearray) -> None:
    dataset = _dataset(name, files, i)
    uid = pydicom.uid.UID(files.syntax)
    dataset.file_meta.TransferSyntaxUID = uid
    if uid.is_compressed:
        dataset.PixelData = encapsulate([bytes(frame)])
        dataset["PixelData"].VR = "OB"
    else:
        dataset.PixelData = bytes(frame)
        dataset["PixelData"].VR = "OW"
    dataset.save_as(path, enforce_file_format=True)


def _dataset(name: str, files: FileSet, i: int) -> Dataset:
    """As long a header as scanners write, with a private block."""
    series, place = divmod(i, _SLICES)

    def uid(*words: object) -> str:
        return generate_uid(entropy_srcs=[name, *map(str, words)])

    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    for keyword, value in {**_common(series, place, uid), **(_ct(place) if files.is_ct else _mammogram(i))}.items():
        setattr(dataset, keyword, value)
    dataset.Rows, dataset.Columns = files.rows, files.columns
    block = dataset.private_block(0x0029, "BENCH PRIVATE HEADER", create=True)
    block.add_new(0x10, "OB", bytes(range(256)) * 8)
    block.add_new(0x11, "LO", "a private note")
    return dataset


def _common(series: int, place: int, uid: Callable[..., str]) -> dict[str, Any]:
    return {
        "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
        "SOPInstanceUID": uid(series, place),
        "StudyDate": "20200102",
        "SeriesDate": "20200102",
        "AcquisitionDate": "20200102",
        "ContentDate": "20200102",
        "StudyTime": "101112",
        "AcquisitionTime": "101215.25",
        "ContentTime": "101215.25",
        "AccessionNumber": f"A{series:06d}",
        "Manufacturer": "BENCH",
        "ManufacturerModelName": "Phantom 64",
        "InstitutionName": "Phantom Hospital",
        "ReferringPhysicianName": "Referrer^R",
        "StationName": "PH1",
        "StudyDescription": "Phantom study",
        "SeriesDescription": "axial",
        "PatientName": f"Phantom^{series}",
        "PatientID": f"P{series:06d}",
        "PatientBirthDate": "19500101",
        "PatientSex": "O",
        "PatientAge": "070Y",
        "BurnedInAnnotation": "NO",
        "StudyInstanceUID": uid("study", series),
        "SeriesInstanceUID": uid("series", series),
        "FrameOfReferenceUID": uid("frame", series),
        "StudyID": "1",
        "SeriesNumber": 2,
        "AcquisitionNumber": 1,
        "InstanceNumber": place + 1,
        "DeviceSerialNumber": "1",
        "SoftwareVersions": "1.0",
        "ProtocolName": "Phantom",
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": 16,
        "BitsStored": 12,
        "HighBit": 11,
        "PixelRepresentation": 0,
    }


def _ct(place: int) -> dict[str, Any]:
    return {
        "SOPClassUID": CTImageStorage,
        "Modality": "CT",
        "BodyPartExamined": "CHEST",
        "ImageOrientationPatient": [1, 0, 0, 0, 1, 0],
        "ImagePositionPatient": [-180, -180, 2.5 * place],
        "PixelSpacing": [0.703125, 0.703125],
        "SliceThickness": 2.5,
        "SliceLocation": 2.5 * place,
        "KVP": 120,
        "DataCollectionDiameter": 500,
        "ReconstructionDiameter": 360,
        "DistanceSourceToDetector": 949,
        "DistanceSourceToPatient": 541,
        "GantryDetectorTilt": 0,
        "TableHeight": 150,
        "RotationDirection": "CW",
        "ExposureTime": 500,
        "XRayTubeCurrent": 300,
        "Exposure": 150,
        "FilterType": "BODY",
        "GeneratorPower": 36,
        "FocalSpots": 0.7,
        "ConvolutionKernel": "STANDARD",
        "PatientPosition": "HFS",
        "WindowCenter": 40,
        "WindowWidth": 400,
        "RescaleIntercept": _INTERCEPT,
        "RescaleSlope": 1,
        "RescaleType": "HU",
    }


def _mammogram(i: int) -> dict[str, Any]:
    return {
        "SOPClassUID": DigitalMammographyXRayImageStorageForPresentation,
        "Modality": "MG",
        "BodyPartExamined": "BREAST",
        "PresentationIntentType": "FOR PRESENTATION",
        "ImageLaterality": "L",
        "ViewPosition": "CC" if i % 2 else "MLO",
        "ImagerPixelSpacing": [0.07, 0.07],
        "WindowCenter": 2048,
        "WindowWidth": 4096,
        "RescaleIntercept": 0,
        "RescaleSlope": 1,
    }
