"""Modality values → grey levels: windows and VOI tables (PS3.3 C.11.2), polarity (C.7.6.3.1.2), quantisation.

All formulas are computed in float64. Tables hold the formulas' results, so both give the same levels to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import Lut, Window
from shardforge.dicom.lut import Tables, entries_of, identity_of, whole_domain

Voi = Window | Lut

# Index ranges of tables. The second covers what 16-bit stored values become with any usual intercept.
_INT16 = (-(1 << 15), (1 << 15) - 1)
_INT32 = (-(1 << 16), (1 << 17) - 1)


def defined(window: Window) -> Window:
    """LINEAR_EXACT in place of LINEAR below width 1, where LINEAR is undefined (C.11.2.1.2.1), else the same."""
    return replace(window, function="LINEAR_EXACT") if window.function == "LINEAR" and window.width < 1 else window


def brightness(values: NDArray[Any], voi: Voi, *, inverted: bool = False) -> NDArray[np.float64]:
    """Brightness, 0 (black) to 1 (white), of modality values of any numeric type and shape.

    Args:
        voi: a window of positive width, or a table, whose entries are divided by the highest value of the declared
            bits, or by the highest entry where that needs another number of bits.
        inverted: MONOCHROME1: 1 - y after the window. NaN stays NaN.
    """
    out = _table(values, voi) if isinstance(voi, Lut) else _window(values.astype(np.float64), defined(voi))
    return np.subtract(1, out, out=out) if inverted else out


def _table(values: NDArray[Any], lut: Lut) -> NDArray[np.float64]:
    highest = int(lut.data.max())
    white = (1 << lut.bits) - 1 if highest.bit_length() == lut.bits else max(highest, 1)
    return entries_of(lut, values) / np.float64(white)


def _window(x: NDArray[np.float64], window: Window) -> NDArray[np.float64]:
    """Overwrites and returns ``x``. Beyond its ends the line is cut off, which is what the standard's cases say."""
    center, width = window.center, window.width
    with np.errstate(over="ignore", invalid="ignore"):
        if window.function == "SIGMOID":
            x -= center
            x *= -4
            x /= width
            np.exp(x, out=x)
            x += 1
            return np.divide(1, x, out=x)
        if window.function == "LINEAR":
            center, width = center - 0.5, width - 1
            if width == 0:
                return np.where(np.isnan(x), x, x > center)
        x -= center
        x /= width
        x += 0.5
        return np.clip(x, 0, 1, out=x)


def levels(values: NDArray[Any], voi: Voi, *, bits: int = 8, inverted: bool = False) -> NDArray[Any]:
    """Grey levels by formula: ``floor(y·(2^bits-1) + 0.5)``, uint8 or uint16 (``bits`` is 8 or 16).

    Args as for `brightness`. NaN becomes black; a VOI table takes it for its first entry.
    """
    out = brightness(values, voi, inverted=inverted)
    out *= (1 << bits) - 1
    out += 0.5
    if values.dtype.kind == "f":
        np.nan_to_num(out, copy=False, nan=0.0)
    # No value is negative, so that cutting the fraction off is rounding down.
    return out.astype(f"uint{bits}")


def level_table(voi: Voi, *, bits: int = 8, inverted: bool = False) -> NDArray[Any]:
    """`levels` of every int16: uint8 or uint16 [65536], indexed by the value itself (negative ones from the end)."""
    return levels(whole_domain(*_INT16), voi, bits=bits, inverted=inverted)


def brightness_table(voi: Voi, *, inverted: bool = False) -> NDArray[np.float32]:
    """`brightness` of every int16: float32 [65536], indexed as `level_table`."""
    return brightness(whole_domain(*_INT16), voi, inverted=inverted).astype(np.float32)


class VoiTables:
    """Grey levels of images, by tables that are kept for the last few windows.

    One per worker; not for several threads.

    Args:
        limit: tables kept, of at most 384 KiB each.
    """

    def __init__(self, limit: int = 64) -> None:
        self._tables = Tables(limit)

    def levels(
        self, values: NDArray[Any], vois: tuple[Voi, ...], *, bits: int = 8, inverted: bool = False
    ) -> NDArray[Any]:
        """Modality values [...], int16, int32 or float32 → uint8 or uint16 [k, ...], one plane per window or table.

        The same as `levels` of each.
        """
        domain = _domain(values)
        planes = np.empty((len(vois), *values.shape), f"uint{bits}")
        if domain is None:
            for plane, voi in zip(planes, vois, strict=True):
                plane[...] = levels(values, voi, bits=bits, inverted=inverted)
            return planes
        # The unsigned view of an int16 is its index from the front, and all of one sign is read faster.
        index = (values.view(np.uint16) if values.dtype == np.int16 else values).astype(np.intp)
        for plane, voi in zip(planes, vois, strict=True):
            # Every index is in the table: "wrap" only spares the copy that "raise" makes with `out`.
            self._table(voi, domain, bits, inverted).take(index, out=plane, mode="wrap")
        return planes

    def levels_between(
        self, low: int, high: int, vois: Sequence[Voi], *, inverted: bool = False
    ) -> NDArray[np.uint8]:
        """The 8-bit levels of every whole number from low to high: uint8 [high - low + 1, k].

        Args:
            low, high: within int16.
        """
        numbers = np.arange(low, high + 1)
        return np.stack([self._table(voi, _INT16, 8, inverted).take(numbers) for voi in vois], axis=1)

    def _table(self, voi: Voi, domain: tuple[int, int], bits: int, inverted: bool) -> NDArray[Any]:
        key = voi if isinstance(voi, Window) else identity_of(voi)
        return self._tables.get(
            (key, domain, bits, inverted),
            lambda: levels(whole_domain(*domain), voi, bits=bits, inverted=inverted),
        )


def _domain(values: NDArray[Any]) -> tuple[int, int] | None:
    """The range of a table for these values, or None where none can be."""
    if values.dtype == np.int16:
        return _INT16
    if values.dtype == np.int32 and values.size and _INT32[0] <= values.min() and values.max() <= _INT32[1]:
        return _INT32
    return None
