"""Colour images to 8-bit RGB (PS3.3 C.7.6.3.1.2)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROUND = 1 << 15
# Pixels at a time: their intermediate values stay in the cache.
_BLOCK = 1 << 14


def ybr_to_rgb(ybr: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """YBR_FULL, and YBR_FULL_422 whose chrominance has been repeated, to RGB.

    R = Y + 1.402 (Cr - 128), G = Y - 0.344136 (Cb - 128) - 0.714136 (Cr - 128), B = Y + 1.772 (Cb - 128), rounded.

    Args:
        ybr: uint8 [..., 3].

    Returns:
        uint8 [..., 3].
    """
    rgb = np.empty(ybr.shape, np.uint8)
    pixels, converted = ybr.reshape(-1, 3), rgb.reshape(-1, 3)
    for start in range(0, len(pixels), _BLOCK):
        _convert(pixels[start : start + _BLOCK], converted[start : start + _BLOCK])
    return rgb


def _convert(ybr: NDArray[np.uint8], rgb: NDArray[np.uint8]) -> None:
    red, green_blue, green_red, blue = _chrominance()
    luminance = ybr[:, 0].astype(np.int16)
    cb, cr = np.ascontiguousarray(ybr[:, 1]), np.ascontiguousarray(ybr[:, 2])
    # Two products are rounded once.
    green = green_blue.take(cb) + green_red.take(cr) >> 16
    for channel, chrominance in enumerate((red.take(cr), green, blue.take(cb))):
        np.add(chrominance, luminance, out=chrominance)
        np.clip(chrominance, 0, 255, out=chrominance)
        rgb[:, channel] = chrominance


@cache
def _chrominance() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """What each chrominance value adds: to red, to green (two parts, in 1/65536), to blue."""
    offset = np.arange(-128, 128)
    red, blue = (np.floor(factor * offset + 0.5).astype(np.int16) for factor in (1.402, 1.772))
    green_blue = np.round(-0.344136 * 65536 * offset).astype(np.int32)
    green_red = np.round(-0.714136 * 65536 * offset).astype(np.int32) + _ROUND
    return red, green_blue, green_red, blue


def to_uint8(rgb: NDArray[Any], bits: int) -> NDArray[np.uint8]:
    """Samples of more than 8 bits as their high bytes.

    Args:
        rgb: unsigned integers.
        bits: that are stored.
    """
    if bits <= 8 and rgb.dtype == np.uint8:
        return rgb
    return np.asarray(rgb >> rgb.dtype.type(max(0, bits - 8)), np.uint8)
