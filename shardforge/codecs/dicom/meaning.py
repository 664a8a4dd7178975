"""How the stored values of a frame are to be read: rescale, windows, padding, polarity, spacing."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.groups import Origin, places
from shardforge.codecs.dicom.luts import read_lut
from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.dicom.sop_classes import CT_CLASSES, RT_DOSE
from shardforge.codecs.dicom.spacing import read_place
from shardforge.codecs.dicom.values import items, numbers, text
from shardforge.codecs.dicom.voi import Voi, read_voi
from shardforge.dicom.facts import FrameMeaning, Lut, PixelFormat
from shardforge.dicom.modality import usable_rescale
from shardforge.dicom.repair import wrap_suspected
from shardforge.shards.catalogue import Flag

_TRANSFORMATION, _MODALITY_LUTS = 0x00289145, 0x00283000
_INTERCEPT, _SLOPE, _DOSE_SCALING = 0x00281052, 0x00281053, 0x3004000E
_PADDING, _PADDING_LIMIT, _SHAPE = 0x00280120, 0x00280121, 0x20500020


def frame_meaning(file: DicomFile, frame: int) -> tuple[FrameMeaning, tuple[Flag, ...]]:
    """What the header says of the values of one frame; functional groups of the frame before shared ones before the
    top level.

    Rescale, windows and padding of colour images are ignored: they are for one sample a pixel (PS3.3 C.11.1, C.11.2).

    Args:
        frame: from 0.

    Returns:
        And what was noticed, without repetition.
    """
    place, place_flags = read_place(file.dataset, frame)
    flags: list[Flag] = list(place_flags)
    plain = file.format.samples == 1 and file.format.photometric != "PALETTE COLOR"
    meaning = _monochrome(file, frame, flags) if plain else FrameMeaning()
    placed = replace(
        meaning,
        spacing=place.spacing,
        spacing_source=place.spacing_source,
        aspect=place.aspect,
        position=place.position,
        orientation=place.orientation,
    )
    return placed, tuple(dict.fromkeys(flags))


def _monochrome(file: DicomFile, frame: int, flags: list[Flag]) -> FrameMeaning:
    slope, intercept, lut, origin = _modality(file, frame, flags)
    voi, voi_flags = _voi(file, frame, slope, intercept, lut, origin)
    flags.extend(voi_flags)
    inverted = file.format.photometric == "MONOCHROME1"
    shape = text(file.dataset, _SHAPE).upper()
    if shape in ("IDENTITY", "INVERSE") and inverted != (shape == "INVERSE"):
        flags.append(Flag.LUT_SHAPE_CONFLICT)
    meaning = FrameMeaning(
        slope,
        intercept,
        lut,
        origin,
        voi.windows,
        voi.luts,
        voi.origin,
        _padding(file, flags),
        inverted,
    )
    if origin != "default" and wrap_suspected(file.modality, file.format, meaning):
        flags.append(Flag.UNSIGNED_WRAP_SUSPECT)
    return meaning


Modality = tuple[float, float, Lut | None, Literal["frame", "shared", "top", "default"]]


def _modality(file: DicomFile, frame: int, flags: list[Flag]) -> Modality:
    """The rescale or Modality LUT of the most specific place that has a usable one (PS3.3 C.11.1, C.7.6.16.2.9)."""
    found: list[tuple[Origin, float, float, Lut | None]] = []
    for origin, place in places(file.dataset, frame, _TRANSFORMATION):
        if origin == "top":
            for item in items(place, _MODALITY_LUTS)[:1]:
                lut = read_lut(item, signed=file.format.signed)
                if lut is None or lut.flat:
                    flags.append(Flag.INVALID_RESCALE)
                else:
                    found.append((origin, 1.0, 0.0, lut))
            if file.sop_class == RT_DOSE and _DOSE_SCALING in place:
                rescale = _rescale(place, _DOSE_SCALING, file.format, flags)
                found.extend([] if rescale is None else [(origin, rescale[0], 0.0, None)])
        rescale = _rescale(place, _SLOPE, file.format, flags)
        found.extend([] if rescale is None else [(origin, *rescale, None)])
    if {"frame", "shared"} <= {origin for origin, *_ in found}:
        flags.append(Flag.FUNCTIONAL_GROUP_CONFLICT)
    if not found:
        return 1.0, 0.0, None, "default"
    origin, slope, intercept, lut = found[0]
    return slope, intercept, lut, origin


def _rescale(place: Dataset, slope_tag: int, of: PixelFormat, flags: list[Flag]) -> tuple[float, float] | None:
    """Slope and intercept; None if both are absent or one of them is unusable."""
    slopes, intercepts = numbers(place, slope_tag, "DS"), numbers(place, _INTERCEPT, "DS")
    if not slopes.values and not intercepts.values:
        return None
    if not (slopes.clean and intercepts.clean):
        flags.append(Flag.BAD_DS_VALUE)
    slope = slopes.first if slopes.values else 1.0
    intercept = intercepts.first if intercepts.values else 0.0
    if not slope or intercept is None or not usable_rescale(of, slope, intercept):
        flags.append(Flag.INVALID_RESCALE)
        return None
    return slope, intercept


def _voi(
    file: DicomFile, frame: int, slope: float, intercept: float, lut: Lut | None, origin: str
) -> tuple[Voi, tuple[Flag, ...]]:
    """The inputs of VOI LUTs are signed where the modality step can give negative values (PS3.3 C.11.2.1.1)."""
    if lut is not None:
        signed = False
    elif origin == "default":
        signed = file.format.signed
    else:
        ends = (slope * value + intercept for value in _range(file.format))
        signed = file.sop_class in CT_CLASSES or min(ends) < 0
    return read_voi(file.dataset, frame, signed=signed)


def _range(of: PixelFormat) -> tuple[int, int]:
    half = 1 << (of.bits_stored - 1)
    return (-half, half - 1) if of.signed else (0, 2 * half - 1)


def _padding(file: DicomFile, flags: list[Flag]) -> tuple[int, int] | None:
    """PixelPaddingValue, up to PixelPaddingRangeLimit where there is one (PS3.3 C.7.5.1.1.2)."""
    if file.format.kind != "int":
        return None
    values = []
    for tag in (_PADDING, _PADDING_LIMIT):
        stated = numbers(file.dataset, tag, "SS" if file.format.signed else "US")
        if stated.first is None:
            continue
        value = int(stated.first)
        if file.format.bits_allocated <= 16:
            # Whatever the VR, the sixteen bits are a stored value.
            value &= 0xFFFF
            value -= 0x10000 if file.format.signed and value >= 0x8000 else 0
        if value != stated.first:
            flags.append(Flag.PADDING_SIGN)
        values.append(value)
    if not values or _PADDING not in file.dataset:
        return None
    return min(values), max(values)
