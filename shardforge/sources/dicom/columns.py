"""The ``dicom_*`` columns known before any pixel is read, by allow-list; raw, for the privacy step to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from shardforge.dicom.allow_list import allowed_values
from shardforge.dicom.day_offset import parse_date
from shardforge.dicom.slices import SliceGroup
from shardforge.dicom.vocabulary import CODES
from shardforge.sources.dicom.header import Header

IDENTIFIERS: Final = ("dicom_patient", "dicom_study_uid", "dicom_series_uid", "dicom_sop_uid")
"""Columns with raw identifiers; never to be published as they are."""
DATES: Final = ("dicom_study_date", "dicom_series_date", "dicom_acquisition_date")
"""Columns with dates, ISO; to be published as offsets per patient, if at all."""
FREE_TEXT: Final = ("dicom_manufacturer", "dicom_model")
"""Columns with text that anything may stand in; only to be published on request."""

_TEXT, _INTEGER, _NUMBER = pa.string(), pa.int32(), pa.float32()
_NUMERICS = ("kvp", "exposure", "exposure_time", "tube_current", "echo_time", "repetition_time", "inversion_time",
             "flip_angle", "field_strength")  # fmt: skip
COLUMN_TYPES: Final[Mapping[str, pa.DataType]] = {
    **dict.fromkeys(IDENTIFIERS, _TEXT),
    "dicom_modality": _TEXT,
    "dicom_body_part": _TEXT,
    "dicom_image_type": pa.list_(_TEXT),
    "dicom_photometric": _TEXT,
    "dicom_transfer_syntax": _TEXT,
    "dicom_laterality": _TEXT,
    "dicom_view_position": _TEXT,
    "dicom_presentation_intent": _TEXT,
    "dicom_slice_index": _INTEGER,
    "dicom_slice_count": _INTEGER,
    "dicom_slice_position_mm": _NUMBER,
    "dicom_spacing_row": _NUMBER,
    "dicom_spacing_col": _NUMBER,
    "dicom_spacing_source": _TEXT,
    "dicom_spacing_slice": _NUMBER,
    "dicom_slice_thickness": _NUMBER,
    "dicom_orientation": pa.list_(_NUMBER),
    "dicom_series_part": _INTEGER,
    "dicom_series_findings": pa.list_(_TEXT),
    "dicom_frames": pa.list_(_INTEGER),
    **{f"dicom_{name}": _NUMBER for name in _NUMERICS},
    **dict.fromkeys(FREE_TEXT, _TEXT),
    **dict.fromkeys(DATES, _TEXT),
}
"""Every column with its type. ``dicom_spacing_*`` and ``dicom_slice_position_mm`` in mm; ``dicom_slice_index`` counts
from 0 along the normal within its group, ``dicom_series_part`` the groups of a series; ``dicom_frames`` has the frame
of every slice of a stack or volume in its file."""


def item_columns(header: Header, group: SliceGroup | None = None, index: int | None = None, frame: int = 0) -> dict[
    str, Any
]:  # fmt: skip
    """The columns of an item but ``dicom_frames``; None where a header says nothing that may be passed on.

    Args:
        group, index: its slices' group, and the number of the slice in there.
        frame: of a multi-frame object.
    """
    place = header.places[frame] if header.places else None
    spacing = header.spacing if place is None or place.spacing is None else place.spacing
    orientation = header.orientation if place is None or place.orientation is None else place.orientation
    finding = None if group is None else group.finding
    distances = None if group is None else group.distances
    return {
        "dicom_patient": header.patient or None,
        "dicom_study_uid": header.study or None,
        "dicom_series_uid": header.series or None,
        "dicom_sop_uid": header.sop_instance or None,
        "dicom_modality": _word("Modality", header.modality),
        "dicom_body_part": _word("BodyPartExamined", header.body_part),
        "dicom_image_type": [word for value in header.image_type if (word := _word("ImageType", value))],
        "dicom_photometric": _word("PhotometricInterpretation", header.photometric),
        "dicom_transfer_syntax": allowed_values("TransferSyntaxUID", [header.transfer_syntax])[0],
        "dicom_laterality": _word("Laterality", header.laterality),
        "dicom_view_position": _word("ViewPosition", header.view_position),
        "dicom_presentation_intent": _word("PresentationIntentType", header.presentation_intent),
        "dicom_slice_index": index,
        "dicom_slice_count": None if finding is None else finding.n_slices,
        "dicom_slice_position_mm": None if distances is None or index is None else distances[index],
        "dicom_spacing_row": None if spacing is None else spacing[0],
        "dicom_spacing_col": None if spacing is None else spacing[1],
        "dicom_spacing_source": None if spacing is None else header.spacing_source,
        "dicom_spacing_slice": None if finding is None else finding.spacing_mm,
        "dicom_slice_thickness": header.slice_thickness,
        "dicom_orientation": None if orientation is None else list(orientation),
        "dicom_series_part": None if finding is None else finding.part,
        "dicom_series_findings": None if finding is None else list(finding.words),
        **{f"dicom_{name}": getattr(header.acquisition, name) for name in _NUMERICS},
        "dicom_manufacturer": header.acquisition.manufacturer or None,
        "dicom_model": header.acquisition.model or None,
        "dicom_study_date": _iso_date(header.study_date),
        "dicom_series_date": _iso_date(header.series_date),
        "dicom_acquisition_date": _iso_date(header.acquisition_date),
    }


def _word(keyword: str, value: str) -> str | None:
    """A code as it stands there, in upper case, if it is a known word; None for text of any other kind."""
    word = value.upper()
    spelt = word.replace(" ", "_")
    return word if {spelt, spelt.replace("_", "")} & CODES[keyword] else None


def _iso_date(text: str) -> str | None:
    found = parse_date(text)
    return None if found is None else found.isoformat()
