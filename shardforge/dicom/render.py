"""Modality values → the picture that is stored: windows, polarity, padding, quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.voi import Voi, VoiTables


@dataclass(frozen=True)
class Rendered:
    """One picture.

    Attributes:
        pixels: uint8 or uint16 [H, W, k], a channel per window, C-contiguous.
        clip_low: per channel, the share of unpadded pixels at the lowest level the window has (before polarity).
        clip_high: as ``clip_low``, at the highest level.
    """

    pixels: NDArray[Any]
    clip_low: tuple[float, ...]
    clip_high: tuple[float, ...]


def render(
    values: NDArray[Any],
    mask: NDArray[np.bool_] | None,
    vois: Sequence[Voi],
    tables: VoiTables,
    *,
    inverted: bool,
    bits: int = 8,
) -> Rendered:
    """Shows modality values [H, W] (int16, int32 or float32) through one or more windows.

    Args:
        mask: True where padding is; these pixels become black, whatever the polarity.
        vois: what `choose` found, in the order of channels.
        inverted: MONOCHROME1.
        bits: 8 or 16.
    """
    planes = tables.levels(values, tuple(vois), bits=bits, inverted=inverted)
    hidden = 0
    if mask is not None:
        hidden = int(np.count_nonzero(mask))
        planes *= ~mask
    count = max(values.size - hidden, 1)
    black = tuple((values.size - int(np.count_nonzero(plane)) - hidden) / count for plane in planes)
    white = tuple(int(np.count_nonzero(plane == (1 << bits) - 1)) / count for plane in planes)
    pixels = np.empty((*values.shape, len(planes)), planes.dtype)
    for channel, plane in enumerate(planes):
        pixels[..., channel] = plane
    low, high = (white, black) if inverted else (black, white)
    return Rendered(pixels, low, high)
