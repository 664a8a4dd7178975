"""A 64-bit hash of a picture's pixels, cheap enough to make always."""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any

import imagecodecs
import numpy as np
import numpy.typing as npt

_SMALL = 1 << 16
"""Bytes from which on libdeflate, ten times faster but slow to begin, is worth it; the sums are the same."""


def pixel_hash(pixels: npt.NDArray[np.uint8] | npt.NDArray[np.uint16]) -> str:
    """16 hex digits; equal for equal pixels of equal shape, on every machine.

    BLAKE2b of the shape, the CRC-32 (RFC 1952) and the Adler-32 (RFC 1950) of the pixels. BLAKE2b of the pixels
    themselves would take a tenth of the time that a small photograph takes in all; these two take about a hundredth.
    It finds what is equal among pictures as they come, not against an adversary.

    Args:
        pixels: [H, W, C], C-contiguous.
    """
    data: Any = pixels  # the stubs leave out that arrays are taken as they are
    if pixels.nbytes < _SMALL:
        sums = zlib.crc32(data), zlib.adler32(data)
    else:
        sums = imagecodecs.deflate_crc32(data), imagecodecs.deflate_adler32(data)
    return hashlib.blake2b(struct.pack("<5Q", *pixels.shape, *sums), digest_size=8).hexdigest()
