"""CT that wrapped around in 12 bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardforge.dicom.facts import FrameMeaning, Lut, PixelFormat
from shardforge.dicom.modality import ModalityTables
from shardforge.dicom.repair import repair_wrap, wrap_suspected

FORMAT = PixelFormat(64, 64, 1, 16, 12, 11, False, False, "MONOCHROME2")
LUT = Lut(0, 16, np.arange(4096, dtype=np.uint16))


@pytest.mark.parametrize(
    ("modality", "fmt", "meaning", "suspect"),
    [
        ("CT", FORMAT, FrameMeaning(intercept=-24), True),
        ("CT", FORMAT, FrameMeaning(intercept=0), True),
        ("CT", FORMAT, FrameMeaning(intercept=-99.5), True),
        ("CT", FORMAT, FrameMeaning(intercept=-100), False),
        ("CT", FORMAT, FrameMeaning(intercept=-1024), False),
        ("MR", FORMAT, FrameMeaning(), False),
        ("CT", replace(FORMAT, signed=True), FrameMeaning(), False),
        ("CT", replace(FORMAT, bits_stored=16), FrameMeaning(), False),
        ("CT", FORMAT, FrameMeaning(modality_lut=LUT), False),
    ],
)
def test_suspicion(modality: str, fmt: PixelFormat, meaning: FrameMeaning, suspect: bool) -> None:
    assert wrap_suspected(modality, fmt, meaning) is suspect


def test_the_repair_is_the_communitys() -> None:
    stored = np.array([[0, 53, 1024, 3095, 3096, 4089, 4095]], np.uint16)
    before = stored.copy()
    moved, meaning = repair_wrap(stored, FrameMeaning(intercept=-24, padding=(3096, 3096)))
    # As the notebooks of RSNA 2019 have it.
    expected = stored.astype(int) + 1000
    expected[expected >= 4096] -= 4096
    assert moved.tolist() == expected.tolist()
    assert (meaning.slope, meaning.intercept, meaning.padding) == (1, -1000, None)
    assert not wrap_suspected("CT", FORMAT, meaning)
    values = ModalityTables().apply(moved, FORMAT, meaning)
    assert values.tolist() == [[0, 53, 1024, 3095, -1000, -7, -1]]
    assert np.array_equal(stored, before)
