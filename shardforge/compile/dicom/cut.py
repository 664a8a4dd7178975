"""What is cut out of a DICOM image before it is resized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.dicom.regions import ultrasound_regions
from shardforge.compile.dicom.frame import Frame
from shardforge.dicom.choose import choose
from shardforge.dicom.render import render
from shardforge.dicom.ultrasound_crop import crop_to_scan
from shardforge.dicom.voi import VoiTables
from shardforge.dicom.windows import FromHeader
from shardforge.errors import SampleError
from shardforge.geometry.breast_crop import locate_breast
from shardforge.shards.catalogue import Reason

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class Cut:
    """A part of an image.

    Attributes:
        box: left, top, right and bottom in pixels, right and bottom exclusive; None: all of it.
        chest_wall: of a mammogram, the side of the picture where it is.
    """

    box: Box | None = None
    chest_wall: Literal["left", "right"] | None = None


def find_cut(crop: str, file: DicomFile, frame: Frame, tables: VoiTables) -> Cut:
    """Where to cut.

    Args:
        crop: ``none``; ``breast``; ``ultrasound``: the largest region of scan, or all where the header marks none;
            ``scan``: likewise, but then nothing else may be kept.

    Raises:
        SampleError: ``burned_in`` for ``scan`` without a region; ``unsupported`` for a breast in colour.
    """
    height, width = frame.values.shape[:2]
    if crop == "breast":
        if frame.coloured:
            raise SampleError(Reason.UNSUPPORTED, "a breast is looked for in grey images")
        choices = choose((FromHeader(),), frame.meaning, frame.values, frame.mask, shown_bits=frame.shown_bits)
        seen = render(
            frame.values, frame.mask, [choice.voi for choice in choices], tables, inverted=frame.meaning.inverted
        )
        found = locate_breast(np.ascontiguousarray(seen.pixels[:, :, 0]), padding=frame.mask)
        return Cut(found.box, found.chest_wall)
    if crop in ("ultrasound", "scan"):
        box = crop_to_scan(ultrasound_regions(file.dataset), width, height)
        if box is None and crop == "scan":
            raise SampleError(Reason.BURNED_IN, "no region of scan is marked")
        return Cut(box)
    return Cut()
