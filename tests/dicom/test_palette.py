"""PALETTE COLOR (PS3.3 C.7.6.3.1.5 and C.7.9.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shardforge.dicom.facts import Lut, Palette
from shardforge.dicom.palette import expand_segments, palette_to_rgb
from shardforge.shards.catalogue import Flag


def palette(*channels: list[int], first: int = 0, bits: int = 8) -> Palette:
    return Palette(*(Lut(first, bits, np.array(channel, np.uint16)) for channel in channels))


def colours(stored: NDArray[Any], of: Palette) -> list[list[int]]:
    rgb, _ = palette_to_rgb(stored, of)
    assert rgb.dtype == np.uint8
    return [list(map(int, colour)) for colour in rgb]


def test_values_outside_the_table_take_its_ends() -> None:
    of = palette([1, 2, 3], [4, 5, 6], [7, 8, 9], first=10)
    assert colours(np.array([0, 10, 11, 12, 255], np.uint8), of) == [
        [1, 4, 7],
        [1, 4, 7],
        [2, 5, 8],
        [3, 6, 9],
        [3, 6, 9],
    ]


def test_tables_of_different_extents_are_looked_up_apart() -> None:
    of = Palette(
        Lut(0, 8, np.array([1, 2], np.uint16)),
        Lut(1, 8, np.array([3, 4, 5], np.uint16)),
        Lut(-1, 8, np.array([6, 7], np.uint16)),
    )
    assert colours(np.array([-1, 0, 1, 2], np.int16), of) == [[1, 3, 6], [1, 3, 7], [2, 3, 7], [2, 4, 7]]


def test_deep_entries_are_reduced_to_their_high_byte() -> None:
    of = palette([0, 0x1234], [0xFF00, 0xFFFF], [0x00FF, 0x0100], bits=16)
    rgb, flags = palette_to_rgb(np.array([0, 1], np.uint8), of)
    assert rgb.tolist() == [[0, 255, 0], [0x12, 255, 1]]
    assert flags == ()


@pytest.mark.parametrize(("entries", "bits", "expected"), [([200], 16, 200), ([0x3400], 8, 0x34), ([1023], 10, 255)])
def test_the_entries_count_and_not_the_declared_depth(entries: list[int], bits: int, expected: int) -> None:
    rgb, flags = palette_to_rgb(np.array([0], np.uint8), palette(entries, entries, entries, bits=bits))
    assert rgb.tolist() == [[expected] * 3]
    assert flags == (() if bits == 10 else (Flag.PALETTE_DEPTH_MISMATCH,))


def test_segments_expand_as_the_standard_describes() -> None:
    words = np.array([0, 2, 10, 20, 1, 4, 40, 0, 1, 7], np.uint16)
    table = expand_segments(words, 7, 16)
    assert table is not None
    assert table.tolist() == [10, 20, 25, 30, 35, 40, 7]
    # The two segments at byte 0 once more.
    copied = expand_segments(np.array([0, 2, 10, 20, 1, 2, 40, 2, 2, 0, 0], np.uint16), 8, 16)
    assert copied is not None
    assert copied.tolist() == [10, 20, 30, 40, 10, 20, 30, 40]
    in_bytes = expand_segments(np.array([0, 1, 9, 0, 1, 8, 2, 1, 3, 0, 0, 0], np.uint16), 3, 8)
    assert in_bytes is not None
    assert in_bytes.tolist() == [9, 8, 8]


@pytest.mark.parametrize(
    "words",
    [
        [],
        [1, 4, 40],
        [0, 0],
        [7, 1, 1],
        [0, 1, 5],
        [0, 1, 5, 2, 9, 0],
        [0, 1, 5, 2, 1, 6, 0],
        [0, 1, 5, 2, 1, 0xFFFF, 9],
    ],
)
def test_segments_that_make_no_sense_give_no_table(words: list[int]) -> None:
    assert expand_segments(np.array(words, np.uint16), 4, 16) is None
