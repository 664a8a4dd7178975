"""What kind of object a DICOM file holds, by its SOP class (PS3.4 B.5, PS3.6 A): an image, or something else."""

from __future__ import annotations

from typing import Literal

ObjectKind = Literal["image", "segmentation", "dose", "directory", "report", "presentation", "plan", "document",
                     "waveform", "other"]  # fmt: skip

_STORAGE = "1.2.840.10008.5.1.4.1.1."
_BY_CLASS: dict[str, ObjectKind] = {
    "1.2.840.10008.1.3.10": "directory",
    _STORAGE + "66.4": "segmentation",
    _STORAGE + "66.7": "segmentation",
    _STORAGE + "481.2": "dose",
    _STORAGE + "481.1": "image",
    _STORAGE + "481.23": "image",
    _STORAGE + "481.24": "image",
    "1.2.840.10008.5.1.4.34.7": "plan",
    _STORAGE + "4.2": "other",
    _STORAGE + "131": "other",
}
_BY_FAMILY: tuple[tuple[str, ObjectKind], ...] = (
    (_STORAGE + "88.", "report"),
    (_STORAGE + "11.", "presentation"),
    (_STORAGE + "104.", "document"),
    (_STORAGE + "9.", "waveform"),
    (_STORAGE + "481.", "plan"),
    (_STORAGE + "200.", "other"),
    ("1.2.840.10008.5.1.4.34.", "plan"),
)
"""Of presentation states, 11.1 to 11.12. ``66`` (raw data, registrations, surfaces) is settled by exact parts."""
_OTHERS = frozenset(_STORAGE + part for part in ("66", "66.1", "66.2", "66.3", "66.5", "66.6", "67", "68.1", "68.2",
                                                 "78.1", "78.2", "78.3", "78.4", "78.5", "78.6", "78.7", "78.8",
                                                 "79.1", "80.1"))  # fmt: skip
_BY_MODALITY: dict[str, ObjectKind] = {
    "SR": "report",
    "KO": "report",
    "PR": "presentation",
    "RTSTRUCT": "plan",
    "RTPLAN": "plan",
    "RTRECORD": "plan",
    "RTDOSE": "dose",
    "SEG": "segmentation",
    "ECG": "waveform",
    "EPS": "waveform",
    "HD": "waveform",
    "REG": "other",
    "FID": "other",
    "PLAN": "plan",
}


def object_kind(sop_class: str, modality: str) -> ObjectKind:
    """The kind by SOP class, or by modality where there is none; unknown classes count as images: pixels decide.

    Args:
        sop_class: SOPClassUID of the dataset, or of the file meta information.
    """
    if not sop_class:
        return _BY_MODALITY.get(modality, "image")
    exact = _BY_CLASS.get(sop_class)
    if exact is not None:
        return exact
    if sop_class in _OTHERS:
        return "other"
    return next((kind for family, kind in _BY_FAMILY if sop_class.startswith(family)), "image")
