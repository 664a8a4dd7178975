"""Resizing of measured values: against an independent resampler, at the ends of the dtype, on the canvas."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.geometry.kernels import Resampler
from shardforge.geometry.resample import cut_out, resize_values
from shardforge.geometry.resize import Placement, place
from tests.resampling import KERNELS, weights


def _hounsfield(height: int, width: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.integers(-1024, 3072, (height, width)).astype(np.int16)


@pytest.mark.parametrize("resampler", ["lanczos", "bicubic", "bilinear", "box"])
def test_values_are_those_of_the_kernel_rounded(resampler: Resampler) -> None:
    values = _hounsfield(37, 50)
    placement = place(50, 37, mode="exact", size=(21, 16), enlarge=False)
    down, across = weights(37, 16, 0, 37, KERNELS[resampler]), weights(50, 21, 0, 50, KERNELS[resampler])
    expected = down @ values.astype(np.float64) @ across.T
    found = resize_values(values, placement, resampler, 0)
    assert found.dtype == np.int16
    # Half a unit of rounding, and what weights of 17 bits leave out of 4096 units.
    assert np.abs(found - expected).max() <= 0.5 + 0.03
    whole = resize_values(values.astype(np.float32), placement, resampler, 0)
    assert whole.dtype == np.float32
    assert np.abs(whole - expected).max() <= 2e-3


def test_overshoot_saturates_at_the_dtype_and_nowhere_before() -> None:
    values = np.full((8, 64), -32768, np.int16)
    values[:, 32:] = 32767
    found = resize_values(values, place(64, 8, mode="exact", size=(20, 8), enlarge=False), "lanczos", 0)
    assert found.min() == -32768
    assert found.max() == 32767
    assert (found[:, :10] < 0).all()
    assert (found[:, 10:] > 0).all()
    small = (values.clip(-100, 100)).astype(np.int16)
    found = resize_values(small, place(64, 8, mode="exact", size=(20, 8), enlarge=False), "lanczos", 0)
    assert found.min() < -100
    assert found.max() > 100


def test_the_canvas_around_has_the_value_asked_for() -> None:
    values = _hounsfield(20, 10)
    placement = place(10, 20, mode="pad", size=20, enlarge=False)
    found = resize_values(values, placement, "lanczos", -1024)
    assert np.array_equal(found[:, 5:15], values)
    assert (found[:, :5] == -1024).all()
    assert (found[:, 15:] == -1024).all()


def test_what_keeps_its_size_is_not_touched() -> None:
    values = _hounsfield(5, 6)
    assert resize_values(values, place(6, 5, mode="none", size=1, enlarge=False), "lanczos", 0) is values


def test_a_cut_leads_back_to_the_whole_picture() -> None:
    values = _hounsfield(30, 40)
    placement = Placement(20, 10, 10, 5, 10, 5, crop_left=7, crop_top=3, whole_width=40, whole_height=30)
    assert np.array_equal(cut_out(values, placement), values[3:13, 7:27])
    # The left edge of what was cut out, 7, lies at 0 on the canvas; half a pixel of canvas is a whole one of source.
    assert (placement.scale_x, placement.scale_y) == (0.5, 0.5)
    assert 7 * placement.scale_x + placement.offset_x == 0
    assert 13 * placement.scale_y + placement.offset_y == 5
    assert placement.whole == (40, 30)
