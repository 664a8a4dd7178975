"""Every resize mode with every filter on a photograph, against convolution in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_sample_image

from shardforge.geometry.resize import place, resize_image
from tests.resampling import KERNELS, reference

PHOTO = np.ascontiguousarray(load_sample_image("china.jpg")[40:301, 100:497])
BACKGROUND = (10, 200, 90)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("mode", "size", "enlarge", "canvas", "inner", "corner"),
    [
        ("shortest", 96, False, (146, 96), (146, 96), (0, 0)),
        ("longest", 96, False, (96, 63), (96, 63), (0, 0)),
        ("exact", (120, 50), False, (120, 50), (120, 50), (0, 0)),
        ("pad", 128, False, (128, 128), (128, 84), (0, 22)),
        ("pad", (60, 200), False, (60, 200), (60, 39), (0, 80)),
        ("shortest", 300, True, (456, 300), (456, 300), (0, 0)),
        ("exact", (500, 300), True, (500, 300), (500, 300), (0, 0)),
    ],
)
def test_every_pixel_is_that_of_the_reference(
    kernel: Any, channels: int, mode: Any, size: Any, enlarge: bool, canvas: Any, inner: Any, corner: Any
) -> None:
    photo = PHOTO if channels == 3 else np.ascontiguousarray(PHOTO[:, :, :1])
    there = place(397, 261, mode=mode, size=size, enlarge=enlarge)
    assert (there.width, there.height) == canvas
    assert (there.inner_width, there.inner_height, there.left, there.top) == (*inner, *corner)
    found = resize_image(photo, there, kernel, BACKGROUND)
    expected = reference(photo, inner, (0, 0, 397, 261), KERNELS[kernel])
    left, top = corner
    part = found[top : top + inner[1], left : left + inner[0]]
    # Rounded after each direction: two levels at most, and hardly any on average.
    error = np.abs(part - expected)
    assert error.max() <= 2
    assert error.mean() <= 0.4
    outside = np.ones(canvas[::-1], bool)
    outside[top : top + inner[1], left : left + inner[0]] = False
    grey = round(0.299 * 10 + 0.587 * 200 + 0.114 * 90)
    assert (found[outside] == (BACKGROUND if channels == 3 else grey)).all()
