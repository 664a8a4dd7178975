"""DICOM files with something to give away in every place a file has for it.

Every text is a marker ``ZZPLANT`` with a number of its own, every UID begins with one stem, dates and times are the
same everywhere: :mod:`tests.dicom_leaks` looks for them in whatever was made from the files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from pydicom.datadict import DicomDictionary
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import CTImageStorage, ExplicitVRLittleEndian

from shardforge.dicom.vocabulary import words

STEM = "ZZPLANT"
UID_STEM = "2.25.7707707707"
DATE, BIRTH_DATE = "19630717", "19391123"
TIME = "074218.613527"

_SIDE = 32

STRUCTURE = words(
    """SpecificCharacterSet SOPClassUID SOPInstanceUID StudyInstanceUID SeriesInstanceUID FrameOfReferenceUID
    PatientID PhotometricInterpretation PixelData PixelDataProviderURL ModalityLUTSequence VOILUTSequence ICCProfile
    IconImageSequence SharedFunctionalGroupsSequence PerFrameFunctionalGroupsSequence SequenceOfUltrasoundRegions"""
)
"""Attributes without which a file could not be read at all, or which get a value of their own below."""

ORDINARY = words(
    """Modality ImageType BurnedInAnnotation ConversionType VOILUTFunction PresentationLUTShape
    PresentationIntentType DateOfSecondaryCapture TimeOfSecondaryCapture SecondaryCaptureDeviceID
    SecondaryCaptureDeviceManufacturer
    SecondaryCaptureDeviceManufacturerModelName SecondaryCaptureDeviceSoftwareVersions HardcopyCreationDeviceID
    HardcopyDeviceManufacturer HardcopyDeviceManufacturerModelName HardcopyDeviceSoftwareVersion
    DigitalImageFormatAcquired"""
)
"""Attributes that a planted text would turn into another kind of picture (a screen shot, say) than a plain CT."""

_TEXTS = ("AE", "CS", "LO", "LT", "SH", "ST", "UC", "UR", "UT")


@dataclass(frozen=True)
class Planted:
    """What was planted.

    Attributes:
        folder: the tree of files.
        pictures: files that are plain CT slices of one series.
        others: files that are refused, skipped or doubtful.
        words: marker → where it stands.
        identifiers: values that must not appear as an unkeyed hash either.
    """

    folder: Path
    pictures: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    identifiers: tuple[str, ...] = ()


class _Markers:
    """Numbers the markers and UIDs of one tree."""

    def __init__(self, first: int) -> None:
        self.words: dict[str, str] = {}
        self._numbers = count(first)

    def text(self, where: str) -> str:
        marker = f"{STEM}{next(self._numbers):07d}"
        self.words[marker] = where
        return marker

    def bytes(self, where: str) -> bytes:
        return (self.text(where) * 4).encode()

    def uid(self) -> str:
        return f"{UID_STEM}{next(self._numbers):07d}"


def plant_patients(folder: Path, patients: int, slices: int = 3) -> Planted:
    """Fills ``folder`` with one tree of :func:`plant_dicom` for each patient, no marker of which is another's."""
    trees = [plant_dicom(folder / f"{number}", slices, 1 + 100_000 * number) for number in range(patients)]
    return Planted(
        folder,
        tuple(path for tree in trees for path in tree.pictures),
        tuple(path for tree in trees for path in tree.others),
        {word: where for tree in trees for word, where in tree.words.items()},
        tuple(dict.fromkeys(name for tree in trees for name in tree.identifiers)),
    )


def plant_dicom(folder: Path, slices: int = 3, first: int = 1) -> Planted:
    """Fills ``folder`` (made here) with ``slices`` CT slices of one patient, and files that are no such slices.

    Args:
        first: number of the first marker.
    """
    markers = _Markers(first)
    patient, study, series = markers.text("PatientID"), markers.uid(), markers.uid()
    inner = folder / markers.text("folder name") / f"{markers.text('folder name')} DOE^JOHN"
    inner.mkdir(parents=True)

    def make(name: str, number: int, spared: frozenset[str]) -> tuple[Path, FileDataset]:
        ds = _ct_slice(number)
        _plant(ds, markers, spared | STRUCTURE, name)
        ds.PatientID, ds.StudyInstanceUID, ds.SeriesInstanceUID = patient, study, series
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = markers.uid()
        ds.FrameOfReferenceUID = markers.uid()
        ds.StudyDate, ds.PatientBirthDate = DATE, BIRTH_DATE
        _plant_file(ds, markers)
        return inner / f"{markers.text('file name')}_{number}{name}", ds

    made = [make(".dcm", number, ORDINARY) for number in range(slices)]
    doubtful = make("_doubtful", slices, frozenset())
    without_pixels = make("_without_pixels", slices + 1, ORDINARY)
    del without_pixels[1].PixelData
    made_others = [doubtful, without_pixels]
    for path, ds in (*made, *made_others):
        ds.save_as(path, enforce_file_format=True)
    cut = inner / f"{markers.text('file name')}_cut.dcm"
    cut.write_bytes(made[0][0].read_bytes()[:-_SIDE])
    junk = inner / f"{markers.text('file name')}.dcm"
    junk.write_text(f"no DICOM at all, but {markers.text('text file')}")
    pictures = tuple(path for path, _ in made)
    others = (*(path for path, _ in made_others), cut, junk)
    instances = [str(ds.SOPInstanceUID) for _, ds in (*made, *made_others)]
    sources = [path.relative_to(folder).as_posix() for path in (*pictures, *others)]
    return Planted(folder, pictures, others, markers.words, (patient, study, series, *instances, *sources, DATE))


def _ct_slice(number: int) -> FileDataset:
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = CTImageStorage
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    ds = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.SOPClassUID, ds.Modality, ds.ImageType = CTImageStorage, "CT", ["ORIGINAL", "PRIMARY", "AXIAL"]
    ds.InstanceNumber, ds.ImageOrientationPatient = number + 1, [1, 0, 0, 0, 1, 0]
    ds.ImagePositionPatient, ds.PixelSpacing, ds.SliceThickness = [0, 0, 2.5 * number], [1, 1], 2.5
    ds.Rows = ds.Columns = _SIDE
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.PixelRepresentation = 1, "MONOCHROME2", 1
    ds.BitsAllocated, ds.BitsStored, ds.HighBit = 16, 16, 15
    ds.RescaleSlope, ds.RescaleIntercept, ds.WindowCenter, ds.WindowWidth = 1, 0, 40, 400
    pixels = np.random.default_rng(number).normal(40, 60, (_SIDE, _SIDE)) + np.arange(_SIDE) * 5
    ds.PixelData = pixels.astype("<i2").tobytes()
    return ds


def _plant(ds: Dataset, markers: _Markers, spared: frozenset[str], name: str) -> None:
    """Every attribute of the dictionary that can hold text, bytes, a UID, a date or a sequence, at the top level."""
    makers: dict[str, Callable[[str], object]] = dict.fromkeys(_TEXTS, markers.text)
    makers |= {
        "PN": lambda where: f"{markers.text(where)}^{markers.text(where)}={markers.text(where)}",
        "OB": markers.bytes,
        "UN": markers.bytes,
        "UI": lambda where: markers.uid(),
        "DA": lambda where: DATE,
        "TM": lambda where: TIME,
        "DT": lambda where: DATE + TIME,
        "SQ": lambda where: Sequence([_item(markers, f"item of {where}")]),
    }
    for tag, (vr, _, _, _, keyword) in DicomDictionary.items():
        group = tag >> 16
        if vr in makers and 0x0004 < group < 0xFFFC and keyword not in spared and tag not in ds:
            ds.add_new(tag, vr, makers[vr](f"{keyword} {name}"))


def _item(markers: _Markers, where: str) -> Dataset:
    item = Dataset()
    item.PatientName, item.TextValue = markers.text(where), markers.text(where)
    item.ReferencedSOPInstanceUID, item.ContentDate = markers.uid(), DATE
    return item


def _plant_file(ds: FileDataset, markers: _Markers) -> None:
    """The places beside the dictionary's: preamble, file meta, private tags, deep items, icon, overlays, the tail."""
    ds.preamble = markers.bytes("preamble").ljust(128, b"\0")
    ds.file_meta.SourceApplicationEntityTitle = markers.text("file meta")
    ds.file_meta.ImplementationVersionName = markers.text("file meta")
    ds.file_meta.PrivateInformationCreatorUID = markers.uid()
    ds.file_meta.PrivateInformation = markers.bytes("file meta")
    for group in (0x0009, 0x0011, 0x7FE1):
        block = ds.private_block(group, markers.text("private creator"), create=True)
        block.add_new(1, "LO", markers.text("private text"))
        block.add_new(2, "UN", markers.bytes("private bytes"))
        block.add_new(3, "SQ", Sequence([_item(markers, "private item")]))
    deep = _item(markers, "fourth level")
    for _ in range(3):
        outer = _item(markers, "deep item")
        outer.ReferencedSeriesSequence = Sequence([deep])
        deep = outer
    ds.ReferencedStudySequence = Sequence([deep])
    ds.IconImageSequence = Sequence([_icon(markers)])
    ds.add_new(0x60000022, "LO", markers.text("OverlayDescription"))
    ds.add_new(0x60001500, "LO", markers.text("OverlayLabel"))
    ds.add_new(0x60004000, "LT", markers.text("OverlayComments"))
    ds.add_new(0x60000010, "US", _SIDE)
    ds.add_new(0x60000011, "US", _SIDE)
    ds.add_new(0x60000040, "CS", "G")
    ds.add_new(0x60000050, "SS", [1, 1])
    ds.add_new(0x60000100, "US", 1)
    ds.add_new(0x60000102, "US", 0)
    ds.add_new(0x60003000, "OW", (markers.bytes("OverlayData") * 9)[: _SIDE * _SIDE // 8])
    ds.add_new(0xFFFCFFFC, "OB", markers.bytes("DataSetTrailingPadding"))


def _icon(markers: _Markers) -> Dataset:
    icon = _item(markers, "icon")
    icon.Rows = icon.Columns = 16
    icon.SamplesPerPixel, icon.PhotometricInterpretation, icon.PixelRepresentation = 1, "MONOCHROME2", 0
    icon.BitsAllocated, icon.BitsStored, icon.HighBit = 8, 8, 7
    icon.PixelData = (markers.bytes("icon pixels") * 6)[:256]
    return icon
