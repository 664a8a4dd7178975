"""Padding: found among stored values, and out of the way of resampling."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.dicom.facts import FrameMeaning
from shardforge.dicom.padding import fill_padding, padding_fraction, padding_mask, valid_values

STORED = np.array([[-2000, 0, 5], [30, 31, -2000]], np.int16)


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ((-2000, -2000), [[1, 0, 0], [0, 0, 1]]),
        ((0, 30), [[0, 1, 1], [1, 0, 0]]),
        ((31, 40_000), [[0, 0, 0], [0, 1, 0]]),
    ],
)
def test_both_ends_of_the_range_are_padding(padding: tuple[int, int], expected: list[list[int]]) -> None:
    mask = padding_mask(STORED, FrameMeaning(padding=padding))
    assert mask is not None
    assert mask.astype(int).tolist() == expected
    assert padding_fraction(mask) == pytest.approx(np.mean(expected))


def test_float_pixel_data_has_padding_too() -> None:
    mask = padding_mask(np.array([[-1.0, 0.5]], np.float32), FrameMeaning(padding=(-1, -1)))
    assert mask is not None
    assert mask.tolist() == [[True, False]]


@pytest.mark.parametrize("padding", [None, (7, 7), (63536, 63536)])
def test_no_padding_is_no_mask(padding: tuple[int, int] | None) -> None:
    mask = padding_mask(STORED, FrameMeaning(padding=padding))
    assert mask is None
    assert padding_fraction(mask) == 0
    assert fill_padding(STORED, mask, inverted=False) is STORED


@pytest.mark.parametrize(("inverted", "darkest"), [(False, 0), (True, 31)])
def test_padding_becomes_the_darkest_valid_value(inverted: bool, darkest: int) -> None:
    before = STORED.copy()
    filled = fill_padding(STORED, STORED == -2000, inverted=inverted)
    assert filled.tolist() == [[darkest, 0, 5], [30, 31, darkest]]
    assert np.array_equal(STORED, before)


def test_numbers_that_are_none_are_not_valid() -> None:
    values = np.array([[np.nan, 2.0], [np.inf, 1.0]], np.float32)
    assert valid_values(values, None).tolist() == [2, 1]
    assert fill_padding(values, np.array([[0, 1], [0, 0]], bool), inverted=False)[0, 1] == 1


def test_a_frame_of_nothing_but_padding_stays() -> None:
    values = np.full((2, 2), -3024, np.int16)
    assert np.array_equal(fill_padding(values, np.ones((2, 2), bool), inverted=False), values)
