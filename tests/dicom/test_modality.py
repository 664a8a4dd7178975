"""Stored values → modality values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.pixels import apply_modality_lut

from shardforge.dicom.facts import FrameMeaning, Lut, PixelFormat
from shardforge.dicom.modality import ModalityTables, modality_dtype, stored_range

CT = PixelFormat(512, 512, 1, 16, 12, 11, False, False, "MONOCHROME2")
SIGNED16 = replace(CT, bits_stored=16, high_bit=15, signed=True)
UNSIGNED16 = replace(SIGNED16, signed=False)
WORDS = replace(UNSIGNED16, bits_allocated=32, bits_stored=32, high_bit=31)
FLOAT = replace(WORDS, kind="float")


def lut_of(first: int, *entries: int, bits: int = 16) -> FrameMeaning:
    return FrameMeaning(modality_lut=Lut(first, bits, np.array(entries, np.uint16)))


def apply(stored: np.ndarray, fmt: PixelFormat, meaning: FrameMeaning) -> np.ndarray:
    """Computed anew, and once more from the table."""
    tables = ModalityTables()
    first, second = tables.apply(stored, fmt, meaning), tables.apply(stored, fmt, meaning)
    assert np.array_equal(first, second, equal_nan=True)
    assert first.dtype == second.dtype
    assert first.shape == stored.shape
    return second


def test_a_table_is_entered_from_its_first_value_and_held_at_its_ends() -> None:
    stored = np.array([-3, -2, -1, 0, 1, 100], np.int16)
    assert apply(stored, SIGNED16, lut_of(-2, 10, 20, 30, 40)).tolist() == [10, 10, 20, 30, 40, 40]


def test_a_table_far_below_the_value_does_not_wrap_around() -> None:
    stored = np.array([32767, -2001, -1999], np.int16)
    meaning = lut_of(-2000, 10, 20, 30, 40)
    assert apply(stored, SIGNED16, meaning).tolist() == [40, 10, 20]
    # pydicom 3.0.2 subtracts in int16 and overflows.
    ds = Dataset()
    ds.ModalityLUTSequence = [Dataset()]
    ds.ModalityLUTSequence[0].add_new(0x00283002, "SS", [4, -2000, 16])
    ds.ModalityLUTSequence[0].add_new(0x00283006, "US", [10, 20, 30, 40])
    assert apply_modality_lut(stored, ds).tolist()[0] == 10


@pytest.mark.parametrize(
    ("fmt", "meaning", "expected"),
    [
        (CT, FrameMeaning(1, -1024), "int16"),
        (CT, FrameMeaning(1, -1024.5), "float32"),
        (CT, FrameMeaning(0.5, 0), "float32"),
        (CT, FrameMeaning(8, 7), "int16"),
        (CT, FrameMeaning(8, 8), "int32"),
        (CT, FrameMeaning(-8, 0), "int16"),
        (SIGNED16, FrameMeaning(), "int16"),
        (SIGNED16, FrameMeaning(1, -1024), "int32"),
        (SIGNED16, FrameMeaning(-1, 0), "int32"),
        (UNSIGNED16, FrameMeaning(), "int32"),
        (UNSIGNED16, FrameMeaning(1, -32768), "int16"),
        (WORDS, FrameMeaning(), "float32"),
        (replace(WORDS, signed=True), FrameMeaning(), "int32"),
        (FLOAT, FrameMeaning(), "float32"),
        (CT, lut_of(0, 1, 32767), "int16"),
        (CT, lut_of(0, 1, 32768), "int32"),
    ],
)
def test_the_type_holds_whatever_the_format_can_hold(fmt: PixelFormat, meaning: FrameMeaning, expected: str) -> None:
    assert modality_dtype(fmt, meaning) == expected


def test_frames_that_belong_together_share_the_widest_type() -> None:
    whole, large, fraction = FrameMeaning(1, -1024), FrameMeaning(20, 0), FrameMeaning(0.2442, -500)
    assert modality_dtype(CT, whole, whole) == "int16"
    assert modality_dtype(CT, whole, large) == "int32"
    assert modality_dtype(CT, fraction, large, whole) == "float32"
    stored = np.array([[0, 4095]], np.uint16)
    values = ModalityTables().apply(stored, CT, whole, "float32")
    assert values.dtype == np.float32
    assert values.tolist() == [[-1024, 3071]]
    for too_small in ("int16", "int32", "uint8", "float64"):
        with pytest.raises(ValueError, match="float32"):
            ModalityTables().apply(stored, CT, fraction, too_small)


@settings(deadline=None, max_examples=60)
@given(
    bits=st.integers(1, 16),
    signed=st.booleans(),
    slope=st.one_of(st.integers(-40, 40).filter(bool), st.floats(-5, 5).filter(lambda slope: abs(slope) > 1e-3)),
    intercept=st.one_of(st.integers(-70_000, 70_000), st.floats(-3000, 3000)),
)
def test_every_value_of_every_format_is_rescaled(bits: int, signed: bool, slope: float, intercept: float) -> None:
    fmt = replace(CT, bits_stored=bits, high_bit=bits - 1, signed=signed)
    low, high = stored_range(fmt)
    stored = np.arange(low, high + 1).astype(np.int16 if signed else np.uint16)
    meaning = FrameMeaning(slope, intercept)
    values = apply(stored, fmt, meaning)
    exact = np.arange(low, high + 1) * np.float64(slope) + intercept
    assert np.array_equal(values, exact.astype(values.dtype))
    if values.dtype != np.float32:
        assert np.array_equal(values, exact)
    assert values.dtype == modality_dtype(fmt, meaning)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("meaning", [FrameMeaning(2, -10), FrameMeaning(0.25, 3), lut_of(1, 5, 6, 7)])
def test_every_pixel_type_serves(dtype: str, meaning: FrameMeaning) -> None:
    stored = np.array([[0, 1, 2, 3, 100]], dtype)
    lut = meaning.modality_lut
    expected = (
        stored.astype(np.float64) * meaning.slope + meaning.intercept if lut is None else np.array([[5, 5, 6, 7, 7]])
    )
    fmt = replace(FLOAT if dtype.startswith("f") else SIGNED16, bits_stored=8 if dtype.endswith("t8") else 32)
    assert apply(stored, fmt, meaning).tolist() == expected.tolist()


def test_the_rescale_is_pydicoms() -> None:
    stored = np.random.default_rng(0).integers(0, 4096, (20, 30)).astype(np.uint16)
    for slope, intercept in ((1, -1024), (0.684, 200), (1.27985347985348, 0), (7.83931637, 0)):
        ds = Dataset()
        ds.RescaleSlope, ds.RescaleIntercept = str(slope), str(intercept)
        expected = apply_modality_lut(stored, ds)
        assert np.array_equal(apply(stored, CT, FrameMeaning(slope, intercept)), expected.astype(np.float32))


def test_frames_with_their_own_slopes_do_not_share_a_table() -> None:
    """The two slopes of the Philips field map dcm_qa_enh/IM_0027_fMAP."""
    tables, stored = ModalityTables(), np.array([[0, 1000, 4095]], np.uint16)
    for _ in range(2):
        for slope, intercept in ((0.2442, -500.0), (1.27985, 0.0)):
            values = tables.apply(stored, CT, FrameMeaning(slope, intercept))
            assert values.tolist() == (stored * slope + intercept).astype(np.float32).tolist()
        for first, expected in ((0, [3, 9, 9]), (1, [3, 3, 9])):
            assert tables.apply(np.array([0, 1, 2], np.uint16), CT, lut_of(first, 3, 9)).tolist() == expected


def test_formats_of_different_sign_do_not_share_a_table() -> None:
    tables, meaning = ModalityTables(), FrameMeaning(0.5, 0)
    assert tables.apply(np.array([40_000], np.uint16), UNSIGNED16, meaning).tolist() == [20_000]
    assert tables.apply(np.array([-25_536], np.int16), SIGNED16, meaning).tolist() == [-12_768]


def test_few_tables_are_kept() -> None:
    tables = ModalityTables(limit=3)
    for slope in (0.5, 0.25, 0.125, 0.75, 0.5, 0.5):
        tables.apply(np.zeros((2, 2), np.uint16), CT, FrameMeaning(slope, 0))
        assert len(tables._tables) <= 3


def test_the_input_is_neither_changed_nor_returned() -> None:
    for meaning in (FrameMeaning(), FrameMeaning(2, 1)):
        stored = np.arange(6, dtype=np.int16)
        values = ModalityTables().apply(stored, replace(CT, signed=True), meaning)
        assert not np.shares_memory(values, stored)
        assert stored.tolist() == [0, 1, 2, 3, 4, 5]
