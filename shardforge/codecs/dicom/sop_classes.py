"""Which SOP classes hold no image (PS3.4 B.5; PS3.6 A)."""

from __future__ import annotations

_STORAGE = "1.2.840.10008.5.1.4.1.1."
_NOT_PICTURES = (
    "1.2.840.10008.1.3.10",  # DICOMDIR
    "1.2.840.10008.5.1.4.34.",  # worklist and instructions
    "1.2.840.10008.5.1.4.38.",  # hanging protocols
    "1.2.840.10008.5.1.4.39.",  # color palettes
    "1.2.840.10008.5.1.4.43.",  # implants
    "1.2.840.10008.5.1.4.44.",
    "1.2.840.10008.5.1.4.45.",
    *(
        _STORAGE + part
        for part in (
            "4.2.",  # MR spectroscopy
            "9.",  # waveforms
            "11.",  # presentation states
            "66.",  # raw data, registrations, fiducials, surfaces, tracts
            "67.",  # real world value mapping
            "68.",  # surface scans
            "78.",  # ophthalmic measurements
            "79.",
            "88.",  # structured reports, key objects
            "90.",  # content assessment
            "104.",  # encapsulated documents
            "200.",  # protocols
            "201.",
            "481.3.",  # RT structures, treatment records, plans and the second generation of them
            "481.4.",
            "481.5.",
            "481.6.",
            "481.7.",
            "481.8.",
            "481.9.",
            *(f"481.{number}." for number in range(10, 23)),
        )
    ),
)
# Segmentations stand among the raw data.
_PICTURES = tuple(_STORAGE + part for part in ("66.4.", "66.7.", "66.8."))
SEGMENTATIONS = frozenset((_STORAGE + "66.4", _STORAGE + "66.7"))
"""Segmentation and label map segmentation storage."""
RT_DOSE = _STORAGE + "481.2"
CT_CLASSES = frozenset(_STORAGE + part for part in ("2", "2.1", "2.2"))
"""CT, enhanced CT and legacy converted CT image storage."""


def is_no_picture(uid: str) -> bool:
    """Whether objects of this SOP class never hold an image."""
    return f"{uid}.".startswith(_NOT_PICTURES) and not f"{uid}.".startswith(_PICTURES)


def is_image_storage(uid: str) -> bool:
    """Whether objects of this SOP class hold an image, by the standard's own classes."""
    return uid.startswith(_STORAGE) and not is_no_picture(uid)
