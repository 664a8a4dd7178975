"""What a sample's row tells of its DICOM image; see :data:`shardforge.shards.metadata.DICOM`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shardforge.codecs.dicom.read import DicomFile
from shardforge.compile.dicom.frame import Frame
from shardforge.compile.dicom.picture import Shown
from shardforge.dicom.padding import padding_fraction


def file_columns(file: DicomFile) -> dict[str, Any]:
    """What the header tells before anything is decoded."""
    return {
        "dicom_transfer_syntax": file.transfer_syntax,
        "dicom_photometric": file.format.photometric,
        "dicom_bits_stored": file.format.bits_stored,
        "dicom_signed": file.format.signed,
    }


def frame_columns(frame: Frame) -> dict[str, Any]:
    """What a decoded frame tells."""
    meaning = frame.meaning
    row, column = meaning.spacing or (None, None)
    found = {
        "dicom_inverted": meaning.inverted,
        "dicom_spacing_row": row,
        "dicom_spacing_col": column,
        "dicom_spacing_source": meaning.spacing_source,
        "dicom_position": _list(meaning.position),
        "dicom_orientation": _list(meaning.orientation),
        "dicom_valid_rows": frame.valid_rows,
        "dicom_second_decoder": frame.second_decoder,
    }
    if frame.coloured:
        return found
    lut = meaning.modality_lut is not None
    return {
        **found,
        "dicom_slope": None if lut else meaning.slope,
        "dicom_intercept": None if lut else meaning.intercept,
        "dicom_modality_source": "lut" if lut else meaning.modality_from,
        "dicom_padding_fraction": padding_fraction(frame.mask),
    }


def window_columns(shown: Sequence[Shown]) -> Mapping[str, Any]:
    """Which windows were applied, per channel."""
    choices = [choice for one in shown for choice in one.choices]
    if not choices:
        return {}
    return {
        "dicom_voi_source": [choice.source for choice in choices],
        "dicom_window_center": [choice.center for choice in choices],
        "dicom_window_width": [choice.width for choice in choices],
        "dicom_voi_function": [choice.function for choice in choices],
        "dicom_clip_low": [share for one in shown for share in one.clip_low],
        "dicom_clip_high": [share for one in shown for share in one.clip_high],
    }


def _list(values: Sequence[float] | None) -> list[float] | None:
    return None if values is None else list(values)
