"""Equal pixels have equal hashes, others do not, on any machine."""

from __future__ import annotations

import hashlib
import struct
import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shardforge.codecs.pixel_hash import pixel_hash


def test_it_is_what_the_standards_say() -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (9, 7, 3), np.uint8)
    data = pixels.tobytes()
    content = struct.pack("<5Q", 9, 7, 3, zlib.crc32(data), zlib.adler32(data))
    assert pixel_hash(pixels) == hashlib.blake2b(content, digest_size=8).hexdigest()


@given(st.integers(0, 2**32), st.integers(0, 10**6))
def test_one_level_or_two_pixels_make_a_difference(seed: int, place: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 10, 3), np.uint8)
    other = pixels.copy()
    other.ravel()[place % other.size] ^= 1
    assert pixel_hash(other) != pixel_hash(pixels) == pixel_hash(pixels.copy())
    swapped = pixels[::-1].copy()
    assert pixel_hash(swapped) != pixel_hash(pixels)


def test_the_shape_counts() -> None:
    flat = np.zeros((4, 6, 3), np.uint8)
    assert len({pixel_hash(flat), pixel_hash(flat.reshape(6, 4, 3)), pixel_hash(flat.reshape(3, 8, 3))}) == 3
