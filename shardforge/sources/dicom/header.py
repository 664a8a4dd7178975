"""What the header pass learns of one DICOM file; plain values that travel between processes."""

from __future__ import annotations

from dataclasses import dataclass

from shardforge.dicom.ultrasound_crop import UltrasoundRegion
from shardforge.shards.catalogue import Flag, Reason
from shardforge.sources.dicom.object_kind import ObjectKind
from shardforge.sources.item import SourceFile

Vector = tuple[float, float, float]
Directions = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class FramePlace:
    """Where a frame of an enhanced multi-frame object lies (PS3.3 C.7.6.16.2).

    Attributes:
        position, orientation: in patient coordinates, mm.
        temporal: TemporalPositionIndex. ``echo``: EffectiveEchoTime, ms. ``b_value``: s/mm².
        acquisition: FrameAcquisitionNumber.
        spacing: between rows and between columns, mm.
    """

    position: Vector | None = None
    orientation: Directions | None = None
    temporal: float | None = None
    echo: float | None = None
    b_value: float | None = None
    acquisition: float | None = None
    spacing: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Acquisition:
    """How the picture was taken: numbers in the units of PS3.6 (kV, mAs, ms, mA, T, degrees).

    ``manufacturer`` and ``model`` are free text.
    """

    kvp: float | None = None
    exposure: float | None = None
    exposure_time: float | None = None
    tube_current: float | None = None
    echo_time: float | None = None
    repetition_time: float | None = None
    inversion_time: float | None = None
    flip_angle: float | None = None
    field_strength: float | None = None
    manufacturer: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Header:
    """One file or zip member, without its pixels. Texts are stripped; "" and None stand for absent.

    Attributes:
        file: what was read; a member of an archive has the path ``archive.zip//inner/name``.
        kind: of object, see :data:`ObjectKind`.
        problem: why it makes no sample, or None; ``detail`` is for the log.
        patient: PatientID without surrounding spaces and NULs. See :attr:`patient_key`.
        frames: NumberOfFrames, at least 1.
        cut: the pixel data seem to end early.
        spacing: between rows and between columns, mm, of the source named in ``spacing_source`` (as in
            :class:`~shardforge.dicom.facts.FrameMeaning`).
        gantry_tilt: degrees, as stated.
        study_date, series_date, acquisition_date: as written (``YYYYMMDD``).
        capture_device: the object has the tags of a secondary-capture device.
        capture_words: SeriesDescription or ImageType speak of a saved screen, a report or patient information.
        places: one per frame where an enhanced object says so, else empty.
        referenced: SOP instance UIDs that a segmentation was made on, in file order.
    """

    file: SourceFile
    kind: ObjectKind = "image"
    problem: Reason | None = None
    detail: str = ""
    flags: tuple[Flag, ...] = ()
    sop_class: str = ""
    transfer_syntax: str = ""
    sop_instance: str = ""
    series: str = ""
    study: str = ""
    patient: str = ""
    modality: str = ""
    body_part: str = ""
    image_type: tuple[str, ...] = ()
    photometric: str = ""
    rows: int = 0
    columns: int = 0
    frames: int = 1
    samples: int = 1
    bits: int = 0
    cut: bool = False
    position: Vector | None = None
    orientation: Directions | None = None
    spacing: tuple[float, float] | None = None
    spacing_source: str | None = None
    slice_thickness: float | None = None
    spacing_between_slices: float | None = None
    instance_number: int | None = None
    acquisition_number: int | None = None
    echo_number: int | None = None
    temporal_position: int | None = None
    b_value: float | None = None
    gantry_tilt: float | None = None
    laterality: str = ""
    view_position: str = ""
    presentation_intent: str = ""
    study_date: str = ""
    series_date: str = ""
    acquisition_date: str = ""
    burned_in_annotation: str = ""
    conversion_type: str = ""
    capture_device: bool = False
    capture_words: bool = False
    regions: tuple[UltrasoundRegion, ...] = ()
    acquisition: Acquisition = Acquisition()
    places: tuple[FramePlace, ...] = ()
    referenced: tuple[str, ...] = ()

    @property
    def study_key(self) -> str:
        """What tells studies apart: the study's UID, else that of series or instance, else the file."""
        return self.study or self.series_key

    @property
    def series_key(self) -> str:
        """What tells series apart: the series' UID, else that of the instance, else the file."""
        return self.series or self.sop_instance or self.file.path

    @property
    def patient_key(self) -> str:
        """What tells patients apart: PatientID, else :attr:`study_key`, so that an empty one merges no strangers."""
        return self.patient or self.study_key
