"""What tables call the parts of a DICOM collection, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardforge.sources.labels import word_of_cell


@dataclass(frozen=True, slots=True)
class SliceIds:
    """What tables may call one slice (or single image, or frame).

    Attributes:
        sop, series, study, patient: SOPInstanceUID, SeriesInstanceUID, StudyInstanceUID and PatientID, raw; blanks
            and NULs around them do not count (PS3.5 6.2), and an empty one is no name.
        slice_index: place of the slice in its series by position, from 0; or None.
        path: of the file, relative to the source folder.
    """

    sop: str = ""
    series: str = ""
    study: str = ""
    patient: str = ""
    slice_index: int | None = None
    path: str = ""


def plain(value: str) -> str:
    """An identifier without the padding that DICOM allows around it."""
    return value.strip(" \0\t\r\n")


def identifier(cell: Any) -> str:
    """A table's cell as an identifier; "" for blanks and NaN. Whole numbers lose the ``.0`` that gaps give them."""
    return plain(word_of_cell(cell) or "")
