"""Stored values: the bits that count, with their sign (check numbers of PS3.5 8.1.1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardforge.dicom.facts import PixelFormat
from shardforge.dicom.stored import resign, stored_dtype, stored_values

GREY = PixelFormat(1, 1, 1, 16, 16, 15, False, False, "MONOCHROME2")


def fmt(allocated: int, stored: int, high: int, signed: bool) -> PixelFormat:
    return replace(GREY, bits_allocated=allocated, bits_stored=stored, high_bit=high, signed=signed)


def value(cell: int, of: PixelFormat) -> int:
    return int(stored_values(np.array([cell], f"u{of.bits_allocated // 8}"), of)[0])


def test_the_check_numbers_of_the_standard_come_out() -> None:
    assert value(0b00011001, fmt(8, 5, 4, True)) == -7
    assert value(0b00011001, fmt(8, 5, 4, False)) == 25
    assert value(6192, fmt(16, 13, 12, True)) == -2000


def test_what_stands_above_and_below_the_bits_that_count_is_ignored() -> None:
    assert value(0xF123, fmt(16, 12, 11, False)) == 0x123
    assert value(0xABCD, fmt(16, 12, 15, False)) == 0xABC
    assert value(0xABCD, fmt(16, 12, 15, True)) == 0xABC - 0x1000


@given(st.sampled_from([8, 16, 32, 64]), st.booleans(), st.data())
def test_values_follow_the_formula(allocated: int, signed: bool, data: st.DataObject) -> None:
    stored = data.draw(st.integers(1, allocated))
    high = data.draw(st.integers(stored - 1, allocated - 1))
    cell = data.draw(st.integers(0, 2**allocated - 1))
    expected = (cell >> (high + 1 - stored)) & (2**stored - 1)
    if signed and expected >= 2 ** (stored - 1):
        expected -= 2**stored
    assert value(cell, fmt(allocated, stored, high, signed)) == expected


def test_values_that_fill_their_cells_are_a_view() -> None:
    cells = np.arange(4, dtype=np.uint16)
    for signed in (False, True):
        values = stored_values(cells, fmt(16, 16, 15, signed))
        assert np.shares_memory(values, cells)
        assert values.dtype == (np.int16 if signed else np.uint16)


@pytest.mark.parametrize(
    ("decoded", "bits", "of", "expected"),
    [
        # An unsigned JPEG 2000 stream of a signed CT (a value of -2000 in 13 bits).
        (np.array([6192], np.uint16), 13, fmt(16, 13, 12, True), -2000),
        # A signed one of an unsigned header.
        (np.array([-1], np.int16), 12, fmt(16, 12, 11, False), 4095),
        # JPEG lossless and JPEG-LS know no sign.
        (np.array([63536], np.uint16), 16, fmt(16, 16, 15, True), -2000),
        # A stream of 8 bits for cells of 16, and one of 16 for cells of 8.
        (np.array([200], np.uint8), 8, fmt(16, 12, 11, False), 200),
        (np.array([200], np.uint16), 16, fmt(8, 8, 7, True), -56),
        (np.array([-300], np.int32), 16, fmt(16, 16, 15, True), -300),
    ],
)
def test_a_codestream_is_read_with_the_sign_of_the_header(
    decoded: np.ndarray, bits: int, of: PixelFormat, expected: int
) -> None:
    values = resign(decoded, bits, of)
    assert (int(values[0]), values.dtype) == (expected, stored_dtype(of))


def test_one_bit_images_and_floats_have_dtypes_of_their_own() -> None:
    assert stored_dtype(fmt(1, 1, 0, False)) == np.uint8
    assert stored_dtype(replace(GREY, kind="float", bits_allocated=32)) == np.float32
    assert stored_dtype(replace(GREY, kind="double", bits_allocated=64)) == np.float64
    bits = np.array([0, 1], np.uint8)
    assert stored_values(bits, fmt(1, 1, 0, False)).tolist() == [0, 1]
