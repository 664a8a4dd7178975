"""Where the pixels of a frame lie, and how large they are (PS3.3 C.7.6.2, C.7.6.16.2, 10.7, C.8.5.5)."""

from __future__ import annotations

from dataclasses import dataclass

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.groups import places
from shardforge.codecs.dicom.values import items, numbers
from shardforge.shards.catalogue import Flag

_MEASURES, _POSITIONS, _ORIENTATIONS = 0x00289110, 0x00209113, 0x00209116
_PIXEL_SPACING, _IMAGER, _NOMINAL, _ASPECT = 0x00280030, 0x00181164, 0x00182010, 0x00280034
_POSITION, _ORIENTATION = 0x00200032, 0x00200037
_REGIONS, _REGION_FORMAT, _UNITS_X, _UNITS_Y, _DELTA_X, _DELTA_Y = (
    0x00186011,
    0x00186012,
    0x00186024,
    0x00186026,
    0x0018602C,
    0x0018602E,
)
_TWO_DIMENSIONAL, _CENTIMETRES = 1, 3


@dataclass(frozen=True)
class Place:
    """Size and place of a frame's pixels; fields as in :class:`shardforge.dicom.facts.FrameMeaning`."""

    spacing: tuple[float, float] | None
    spacing_source: str | None
    aspect: float
    position: tuple[float, float, float] | None
    orientation: tuple[float, float, float, float, float, float] | None


def read_place(dataset: Dataset, frame: int) -> tuple[Place, tuple[Flag, ...]]:
    """Spacing, position and orientation; None for what is absent or unusable, never an invented value.

    Returns:
        And ``bad_ds_value`` for values that are there and unusable.
    """
    flags: list[Flag] = []
    spacing, source = _spacing(dataset, frame, flags)
    aspect = _aspect(dataset, flags) if spacing is None else spacing[0] / spacing[1]
    position = _vector(dataset, frame, _POSITIONS, _POSITION, 3, flags)
    orientation = _vector(dataset, frame, _ORIENTATIONS, _ORIENTATION, 6, flags)
    return (
        Place(
            spacing,
            source,
            aspect,
            None if position is None else (position[0], position[1], position[2]),
            None
            if orientation is None
            else (orientation[0], orientation[1], orientation[2], orientation[3], orientation[4], orientation[5]),
        ),
        tuple(flags),
    )


def _spacing(dataset: Dataset, frame: int, flags: list[Flag]) -> tuple[tuple[float, float] | None, str | None]:
    for _, place in places(dataset, frame, _MEASURES):
        found = _pair(place, _PIXEL_SPACING, flags)
        if found is not None:
            return found, "pixel_spacing"
    for tag, name in ((_IMAGER, "imager_pixel_spacing"), (_NOMINAL, "nominal_scanned_pixel_spacing")):
        found = _pair(dataset, tag, flags)
        if found is not None:
            return found, name
    found = _ultrasound(dataset)
    return found, None if found is None else "ultrasound_region"


def _pair(place: Dataset, tag: int, flags: list[Flag]) -> tuple[float, float] | None:
    """Two lengths above 0, or None."""
    stated = numbers(place, tag, "DS")
    if not stated.values:
        return None
    pair = stated.whole(2)
    usable = pair is not None and min(pair) > 0
    if not (stated.clean and usable):
        flags.append(Flag.BAD_DS_VALUE)
    return (pair[0], pair[1]) if pair is not None and usable else None


def _ultrasound(dataset: Dataset) -> tuple[float, float] | None:
    """The scale of the two-dimensional regions in centimetres (C.8.5.5), if they agree."""
    scales = set()
    for region in items(dataset, _REGIONS):
        units = (numbers(region, _UNITS_X, "US").first, numbers(region, _UNITS_Y, "US").first)
        if numbers(region, _REGION_FORMAT, "US").first != _TWO_DIMENSIONAL or units != (_CENTIMETRES, _CENTIMETRES):
            continue
        down, right = numbers(region, _DELTA_Y, "FD").first, numbers(region, _DELTA_X, "FD").first
        if down and right:
            # A negative step only tells the direction.
            scales.add((abs(down) * 10, abs(right) * 10))
    return scales.pop() if len(scales) == 1 else None


def _aspect(dataset: Dataset, flags: list[Flag]) -> float:
    """PixelAspectRatio: height over width (PS3.3 C.7.6.3.1.7)."""
    pair = _pair(dataset, _ASPECT, flags)
    return 1.0 if pair is None else pair[0] / pair[1]


def _vector(
    dataset: Dataset, frame: int, macro: int, tag: int, count: int, flags: list[Flag]
) -> tuple[float, ...] | None:
    for _, place in places(dataset, frame, macro):
        stated = numbers(place, tag, "DS")
        if stated.values:
            found = stated.whole(count)
            if found is None or not stated.clean:
                flags.append(Flag.BAD_DS_VALUE)
            if found is not None:
                return found
    return None
