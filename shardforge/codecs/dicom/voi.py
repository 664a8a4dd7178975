"""Windows and VOI LUTs of a frame (PS3.3 C.11.2, C.7.6.16.2.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydicom.dataset import Dataset

from shardforge.codecs.dicom.groups import places
from shardforge.codecs.dicom.luts import read_lut
from shardforge.codecs.dicom.values import items, numbers, text
from shardforge.dicom.facts import Lut, VoiFunction, Window
from shardforge.shards.catalogue import Flag

_LARGEST = float(np.finfo(np.float32).max)
"""Modality values are float32 at most."""
_CENTER, _WIDTH, _FUNCTION = 0x00281050, 0x00281051, 0x00281056
_FRAME_VOI, _VOI_LUTS = 0x00289132, 0x00283010


@dataclass(frozen=True)
class Voi:
    """The valid windows and tables, and where they stand."""

    windows: tuple[Window, ...] = ()
    luts: tuple[Lut, ...] = ()
    origin: Literal["frame", "shared", "top", "default"] = "default"


def read_voi(dataset: Dataset, frame: int, *, signed: bool) -> tuple[Voi, tuple[Flag, ...]]:
    """The windows and tables of the most specific place that has a valid one.

    Args:
        signed: the inputs of VOI LUTs may be negative.

    Returns:
        And flags: ``invalid_window``, ``window_count_mismatch``, ``width_below_1``, ``bad_ds_value``.
    """
    flags: list[Flag] = []
    for origin, place in places(dataset, frame, _FRAME_VOI):
        windows = _windows(place, flags)
        found = (read_lut(item, signed=signed) for item in items(place, _VOI_LUTS))
        tables = [lut if lut is not None and not lut.flat else None for lut in found]
        luts = tuple(lut for lut in tables if lut is not None)
        flags += [Flag.INVALID_WINDOW] * (len(tables) - len(luts))
        if windows or luts:
            return Voi(windows, luts, origin), tuple(flags)
    return Voi(), tuple(flags)


def _windows(place: Dataset, flags: list[Flag]) -> tuple[Window, ...]:
    """Centers and widths in pairs, but for those without a partner, a width above 0, and numbers within float32.

    A function that the standard does not know is LINEAR, as none is, and flagged.
    """
    centers, widths = numbers(place, _CENTER, "DS"), numbers(place, _WIDTH, "DS")
    if not (centers.clean and widths.clean):
        flags.append(Flag.BAD_DS_VALUE)
    if centers.values and widths.values and len(centers.values) != len(widths.values):
        flags.append(Flag.WINDOW_COUNT_MISMATCH)
    elif bool(centers.values) != bool(widths.values):
        flags.append(Flag.INVALID_WINDOW)
    stated = text(place, _FUNCTION).upper()
    function: VoiFunction = "LINEAR"
    if stated == "SIGMOID":
        function = "SIGMOID"
    elif stated == "LINEAR_EXACT":
        function = "LINEAR_EXACT"
    elif stated not in ("", "LINEAR") and centers.values and widths.values:
        flags.append(Flag.INVALID_WINDOW)
    windows = []
    for center, width in zip(centers.values, widths.values, strict=False):
        if center is None or width is None or width <= 0 or max(abs(center), width) > _LARGEST:
            flags.append(Flag.INVALID_WINDOW)
        elif function == "LINEAR" and width < 1:
            # LINEAR divides by the width less one (PS3.3 C.11.2.1.2.1).
            flags.append(Flag.WIDTH_BELOW_1)
            windows.append(Window(center, width, "LINEAR_EXACT"))
        else:
            windows.append(Window(center, width, function))
    return tuple(windows)
