"""Modality values → the picture that is stored: windows, polarity, padding, quantisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

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


def as_modality_values(resampled: NDArray[np.floating[Any]], dtype: DTypeLike) -> NDArray[Any]:
    """Floats out of a resampler → the type of modality values: rounded (half to even), cut off at the type's range.

    Raises:
        ValueError: ``dtype`` is none of int16, int32 and float32.
    """
    target = np.dtype(dtype)
    if target == np.float32:
        return resampled.astype(target, copy=False)
    if target not in (np.int16, np.int32):
        raise ValueError(f"modality values of type {target}")
    limits = np.iinfo(target)
    # float32 holds the limits of int16, but not those of int32.
    rounded: NDArray[Any] = np.rint(resampled if target == np.int16 else resampled.astype(np.float64))
    return np.clip(rounded, limits.min, limits.max, out=rounded).astype(target)
