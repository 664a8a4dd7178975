"""CT whose negative values wrapped around in 12 bits, as in the RSNA 2019 hemorrhage set: suspicion and repair.

Nothing here happens by itself: a file that looks wrapped is flagged, and repaired only where the recipe says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import FrameMeaning, PixelFormat

_OFFSET = 1000
_VALUES = 1 << 12
_USUAL_INTERCEPT = -100
"""Unsigned CT needs an intercept near -1000 to reach the HU of air; above this one it does not come close."""


def wrap_suspected(modality: str, fmt: PixelFormat, meaning: FrameMeaning) -> bool:
    """12-bit unsigned CT whose intercept is above -100 (the flag ``UNSIGNED_WRAP_SUSPECT``).

    Args:
        modality: the Modality attribute (0008,0060).
    """
    return (
        modality == "CT"
        and fmt.kind == "int"
        and fmt.bits_stored == 12
        and not fmt.signed
        and meaning.modality_lut is None
        and meaning.intercept > _USUAL_INTERCEPT
    )


def repair_wrap(stored: NDArray[Any], meaning: FrameMeaning) -> tuple[NDArray[np.uint16], FrameMeaning]:
    """Stored values moved up by 1000, modulo 4096, and an intercept of -1000: what the set's users settled on.

    Values up to 3095 mean what they meant with an intercept of 0, higher ones are 4096 less. The padding mask has to
    be taken before, from the stored values as they are; the new meaning knows no padding.
    """
    moved = ((stored.astype(np.int64) + _OFFSET) % _VALUES).astype(np.uint16)
    return moved, replace(meaning, intercept=-float(_OFFSET), padding=None)
