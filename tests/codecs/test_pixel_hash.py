"""Equal pixels have equal hashes, others do not, on any machine."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardforge.codecs.pixel_hash import pixel_hash


@pytest.mark.parametrize("shape", [(9, 7, 3), (1, 1, 1), (255, 257, 1), (256, 256, 1), (300, 200, 3)])
def test_it_is_what_the_standards_say_by_whichever_library(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, shape, np.uint8)
    data = pixels.tobytes()
    start = 65536 * shape[0] + shape[1]
    assert pixel_hash(pixels) == f"{zlib.crc32(data, start):08x}{zlib.adler32(data):08x}"


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
