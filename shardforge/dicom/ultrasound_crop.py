"""The part of an ultrasound picture that is scan, without the borders where names and scales are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Box = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels of the source; right and bottom are exclusive."""

_TWO_DIMENSIONAL = 1
_TISSUE, _COLOUR_FLOW = 1, 2
_SMALLEST_SIDE = 16
_SMALLEST_SHARE = 0.02


@dataclass(frozen=True)
class UltrasoundRegion:
    """An item of SequenceOfUltrasoundRegions (PS3.3 C.8.5.5.1).

    Attributes:
        min_x, min_y, max_x, max_y: Region Location Min X0, Min Y0, Max X1, Max Y1: its first and last column and row.
        spatial_format: 1 is two-dimensional (tissue or flow); others are M-mode, spectra, waveforms, graphics.
        data_type: 1 is tissue, 2 colour flow.
    """

    min_x: int
    min_y: int
    max_x: int
    max_y: int
    spatial_format: int
    data_type: int


def scan_regions(regions: Sequence[UltrasoundRegion], width: int, height: int) -> list[Box]:
    """The two-dimensional tissue and flow regions, clipped to the image.

    Left out are those that no scan can have: turned inside out, outside of the image, under 16 pixels on a side, or
    under 2 % of the image.
    """
    boxes = []
    for region in regions:
        if region.spatial_format != _TWO_DIMENSIONAL or region.data_type not in (_TISSUE, _COLOUR_FLOW):
            continue
        left, top = max(region.min_x, 0), max(region.min_y, 0)
        right, bottom = min(region.max_x + 1, width), min(region.max_y + 1, height)
        box = (left, top, right, bottom)
        if min(right - left, bottom - top) >= _SMALLEST_SIDE and _area(box) >= _SMALLEST_SHARE * width * height:
            boxes.append(box)
    return boxes


def crop_to_scan(
    regions: Sequence[UltrasoundRegion], width: int, height: int, choose: Literal["largest", "union"] = "largest"
) -> Box | None:
    """Where to crop an ultrasound image of ``width`` by ``height`` pixels.

    ``largest`` takes the largest region (the first of equal ones); ``union`` the smallest box around all of them,
    with whatever stands between two scans that lie side by side.

    Returns:
        None if no region is usable; then nothing is known to be free of text.
    """
    boxes = scan_regions(regions, width, height)
    if not boxes:
        return None
    if choose == "largest":
        return max(boxes, key=_area)
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _area(box: Box) -> int:
    left, top, right, bottom = box
    return (right - left) * (bottom - top)
