"""Resizing 16-bit pictures against convolution in float64, written from the kernels' definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardforge.geometry.resize import Placement, place, resize_image
from tests.resampling import KERNELS, reference


def _placement(width: int, height: int, inner: tuple[int, int]) -> Placement:
    return Placement(width, height, *inner, *inner)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("inner", [(19, 11), (40, 70), (53, 37), (7, 37)])
def test_every_value_is_the_rounded_one_of_float64(name: Any, channels: int, inner: tuple[int, int]) -> None:
    pixels = np.random.default_rng(1).integers(0, 65536, (37, 53, channels), dtype=np.uint16)
    pixels[:5] = 65535
    found = resize_image(pixels, _placement(53, 37, inner), name, (0, 0, 0))
    assert found.dtype == np.uint16
    assert found.shape == (inner[1], inner[0], channels)
    expected = reference(pixels, inner, (0, 0, 53, 37), KERNELS[name])
    # Half a level of rounding, and what float32 leaves out between the two directions.
    assert np.abs(found - expected).max() <= 0.52


def test_a_part_of_a_pixel_at_the_edge_counts_as_a_part() -> None:
    pixels = np.random.default_rng(2).integers(0, 65536, (20, 30, 3), dtype=np.uint16)
    box = (0.5, 0.0, 30.0, 19.5)
    found = resize_image(pixels, _placement(59, 39, (10, 8)), "lanczos", (0, 0, 0), box)
    assert np.abs(found - reference(pixels, (10, 8), box, KERNELS["lanczos"])).max() <= 0.52


def test_a_faint_gradient_survives() -> None:
    ramp = np.repeat(np.arange(1000, 1200, dtype=np.uint16)[None, :, None], 50, axis=0)
    found = resize_image(ramp, _placement(200, 50, (100, 25)), "bilinear", (0, 0, 0))
    assert len(np.unique(found)) > 90


def test_the_background_around_a_padded_picture_is_257_times_its_8_bit_colour() -> None:
    pixels = np.full((4, 8, 3), 1234, np.uint16)
    placement = place(8, 4, mode="pad", size=8, enlarge=False, max_pixels=1000)
    found = resize_image(pixels, placement, "lanczos", (10, 20, 255))
    assert found[0, 0].tolist() == [2570, 5140, 65535]
    assert (found[2:6] == 1234).all()
    grey = resize_image(pixels[:, :, :1], placement, "lanczos", (10, 20, 255))
    assert int(grey[0, 0, 0]) == round(257 * (10 * 0.299 + 20 * 0.587 + 255 * 0.114))


def test_nothing_is_copied_where_nothing_changes() -> None:
    pixels = np.zeros((5, 6, 3), np.uint16)
    assert resize_image(pixels, _placement(6, 5, (6, 5)), "lanczos", (0, 0, 0)) is pixels
