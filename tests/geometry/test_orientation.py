from __future__ import annotations

import numpy as np
import pytest

from shardforge.geometry.orientation import apply_orientation, oriented_size

# The letters a..f are stored in two rows of three; this has to be seen (EXIF 2.32, tag 0x0112: which edges of the
# scene the first row and the first column of the stored picture are).
UPRIGHT = {
    1: ["abc", "def"],
    2: ["cba", "fed"],
    3: ["fed", "cba"],
    4: ["def", "abc"],
    5: ["ad", "be", "cf"],
    6: ["da", "eb", "fc"],
    7: ["fc", "eb", "da"],
    8: ["cf", "be", "ad"],
}


def _letters(rows: list[str]) -> np.ndarray:
    return np.array([[ord(letter) for letter in row] for row in rows], np.uint8)


@pytest.mark.parametrize(("orientation", "rows"), UPRIGHT.items())
def test_stored_pixels_are_turned_upright(orientation: int, rows: list[str]) -> None:
    stored = _letters(UPRIGHT[1])
    turned = apply_orientation(stored, orientation)
    assert np.array_equal(turned, _letters(rows))
    assert turned.flags.c_contiguous
    assert oriented_size(3, 2, orientation) == (turned.shape[1], turned.shape[0])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_channels_and_other_types_are_turned_alike(orientation: int) -> None:
    stored = np.arange(2 * 3 * 3, dtype=np.uint16).reshape(2, 3, 3)
    turned = apply_orientation(stored, orientation)
    assert turned.dtype == np.uint16
    for channel in range(3):
        assert np.array_equal(turned[:, :, channel], apply_orientation(stored[:, :, channel], orientation))


def test_nothing_is_copied_for_orientation_1() -> None:
    stored = np.zeros((2, 3, 3), np.uint8)
    assert apply_orientation(stored, 1) is stored


@pytest.mark.parametrize("orientation", [0, 9, -1])
def test_other_orientations_are_an_error(orientation: int) -> None:
    with pytest.raises(ValueError, match="orientation"):
        apply_orientation(np.zeros((2, 3), np.uint8), orientation)
