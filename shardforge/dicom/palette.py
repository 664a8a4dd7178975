"""PALETTE COLOR: stored values through three look-up tables (PS3.3 C.7.6.3.1.5, C.7.9)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import Lut, Palette
from shardforge.shards.catalogue import Flag


def palette_to_rgb(stored: NDArray[Any], palette: Palette) -> tuple[NDArray[np.uint8], tuple[Flag, ...]]:
    """Colours of stored values; values outside the tables take their first or last entry.

    Entries declared with more than 8 bits are reduced to their high byte, unless none of the palette exceeds 255:
    then they are taken as they are, and flagged ``palette_depth_mismatch``.

    Args:
        stored: integers, any shape.

    Returns:
        uint8 [..., 3], and flags.
    """
    luts = (palette.red, palette.green, palette.blue)
    deep = any(lut.data.max() > 255 for lut in luts)
    tables = [_to_uint8(lut, deep=deep) for lut in luts]
    flags = (Flag.PALETTE_DEPTH_MISMATCH,) if deep != any(lut.bits > 8 for lut in luts) else ()
    same = len({(lut.first, len(lut.data)) for lut in luts}) == 1
    if same:
        joined = np.stack(tables, axis=1)
        return np.asarray(joined.take(_index(stored, luts[0]), axis=0)), flags
    channels = [table[_index(stored, lut)] for table, lut in zip(tables, luts, strict=True)]
    return np.stack(channels, axis=-1), flags


def _index(stored: NDArray[Any], lut: Lut) -> NDArray[Any]:
    last = len(lut.data) - 1
    limits = np.iinfo(stored.dtype)
    if lut.first == 0 and limits.min >= 0 and limits.max <= last:
        return stored
    clipped: NDArray[Any] = np.clip(stored.astype(np.int64) - lut.first, 0, last)
    return clipped


def _to_uint8(lut: Lut, *, deep: bool) -> NDArray[np.uint8]:
    if not deep:
        return lut.data.astype(np.uint8)
    # Entries of 10 or 12 bits stand in the low part of their words.
    shift = 8 if lut.bits in (8, 16) else lut.bits - 8
    reduced: NDArray[np.uint8] = np.minimum(lut.data >> shift, 255).astype(np.uint8)
    return reduced


def expand_segments(words: NDArray[np.uint16], entries: int, bits: int) -> NDArray[np.uint16] | None:
    """A segmented palette's table (PS3.3 C.7.9.2): discrete, linear and indirect segments.

    Args:
        words: the segment data; bytes of 8-bit palettes, widened.
        entries: of the table, as its descriptor says.
        bits: of an entry, as its descriptor says.

    Returns:
        uint16 [entries], or None if the segments do not give so many.
    """
    table: list[int] = []
    sound = _expand(words.tolist(), 0, None, table, entries, deep=bits > 8)
    return np.array(table[:entries], np.uint16) if sound and len(table) >= entries else None


def _expand(values: list[int], at: int, count: int | None, table: list[int], entries: int, *, deep: bool) -> bool:
    """Appends ``count`` segments, or all there are; whether they make sense."""
    end = len(values)
    while at + 1 < end and len(table) < entries and count != 0:
        kind, length = values[at], values[at + 1]
        at += 2
        if length == 0:
            return False
        if kind == 0:
            table.extend(values[at : at + length])
            at += length
        elif kind == 1 and table and at < end:
            # From the entry before, which is not repeated, to the given one.
            line = np.linspace(table[-1], values[at], length + 1)[1:]
            table.extend(np.floor(line + 0.5).astype(int).tolist())
            at += 1
        elif kind == 2 and count is None and at + (2 if deep else 4) <= end:
            # Where the copied segments begin, in bytes.
            if deep:
                offset, at = (values[at] | values[at + 1] << 16) // 2, at + 2
            else:
                offset, at = int.from_bytes(bytes(values[at : at + 4]), "little"), at + 4
            if not _expand(values, offset, length, table, entries, deep=deep):
                return False
        else:
            return False
        count = None if count is None else count - 1
    return True
