"""Three windows of one picture by one look-up a pixel, with what its levels count up to.

The most usual build of CT: planes that are looked up, laid side by side and counted one after the other take twice as
long. A value's levels stand side by side in four bytes of a table, and pixels are counted by value, not by channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.render import Rendered
from shardforge.dicom.voi import Voi, VoiTables
from shardforge.shards.statistics import LEVELS, Histogram

WINDOWS = 3
_BYTES = 4
"""Of an entry: three levels, and one byte that is dropped."""


def render_three(
    values: NDArray[np.int16],
    mask: NDArray[np.bool_] | None,
    vois: Sequence[Voi],
    tables: VoiTables,
    *,
    inverted: bool,
) -> tuple[Rendered, Histogram]:
    """What :func:`shardforge.dicom.render.render` gives for 8 bits, and the counts of its pixels [3, 256].

    Args:
        values: int16 [H, W], not empty.
        mask: True where padding is.
        vois: three windows or tables.
        inverted: MONOCHROME1.
    """
    low, high = int(values.min()), int(values.max())
    entries = np.zeros((high - low + 1, _BYTES), np.uint8)
    entries[:, :WINDOWS] = tables.levels_between(low, high, vois, inverted=inverted)
    # Two's complement wraps around: what is above the lowest value fits 16 bits without a sign.
    index = (values.view(np.uint16) - np.uint16(low & 0xFFFF)).astype(np.intp)
    packed: NDArray[Any] = entries.view(np.uint32)[:, 0].take(index, mode="wrap")
    if mask is not None:
        packed[mask] = 0
    pixels = np.asarray(cv2.cvtColor(packed.view(np.uint8).reshape(*values.shape, _BYTES), cv2.COLOR_BGRA2BGR))
    shown = index.ravel() if mask is None else index[~mask]
    by_value = np.bincount(shown, minlength=len(entries))
    rows = [np.bincount(entries[:, channel], by_value, LEVELS) for channel in range(WINDOWS)]
    counts = np.stack(rows).astype(np.int64)
    total = max(shown.size, 1)
    black, white = (tuple(count / total for count in counts[:, level].tolist()) for level in (0, LEVELS - 1))
    counts[:, 0] += values.size - shown.size
    dark, bright = (white, black) if inverted else (black, white)
    return Rendered(pixels, dark, bright), counts
