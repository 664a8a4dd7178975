"""Resizing 16-bit pictures against convolution in float64, written from the kernels' definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shardforge.geometry.resize import Placement, place, resize_image

Kernel = tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], float]


def _lanczos(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def _bicubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x, a = np.abs(x), -0.5
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _bilinear(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(1 - np.abs(x), 0, None)


def _box(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return ((x > -0.5) & (x <= 0.5)).astype(float)


KERNELS: dict[Any, Kernel] = {
    "lanczos": (_lanczos, 3), "bicubic": (_bicubic, 2), "bilinear": (_bilinear, 1), "box": (_box, 0.5)
}  # fmt: skip


def _weights(source: int, target: int, low: float, high: float, kernel: Kernel) -> NDArray[np.float64]:
    """[target, source]: a kernel stretched by the reduction, cut at the edges and normalised."""
    shape, support = kernel
    scale = (high - low) / target
    stretch = max(1.0, scale)
    out = np.zeros((target, source))
    for i in range(target):
        centre = low + (i + 0.5) * scale
        first = max(0, int(centre - support * stretch + 0.5))
        last = min(source, int(centre + support * stretch + 0.5))
        row = shape((np.arange(first, last) - centre + 0.5) / stretch)
        out[i, first:last] = row / row.sum()
    return out


def _reference(pixels: NDArray[Any], size: tuple[int, int], box: Any, kernel: Kernel) -> NDArray[np.float64]:
    left, top, right, bottom = box
    across = _weights(pixels.shape[1], size[0], left, right, kernel)
    down = _weights(pixels.shape[0], size[1], top, bottom, kernel)
    return np.einsum("yh,xw,hwc->yxc", down, across, pixels.astype(np.float64)).clip(0, 65535)


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
    expected = _reference(pixels, inner, (0, 0, 53, 37), KERNELS[name])
    # Half a level of rounding, and what float32 leaves out between the two directions.
    assert np.abs(found - expected).max() <= 0.52


def test_a_part_of_a_pixel_at_the_edge_counts_as_a_part() -> None:
    pixels = np.random.default_rng(2).integers(0, 65536, (20, 30, 3), dtype=np.uint16)
    box = (0.5, 0.0, 30.0, 19.5)
    found = resize_image(pixels, _placement(59, 39, (10, 8)), "lanczos", (0, 0, 0), box)
    assert np.abs(found - _reference(pixels, (10, 8), box, KERNELS["lanczos"])).max() <= 0.52


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
