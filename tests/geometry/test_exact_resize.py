"""Exact resizing against whole-number arithmetic, and its weights against kernels written from their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from shardforge.geometry import exact_resize
from shardforge.geometry.exact_resize import LIMIT, resize_exactly
from shardforge.geometry.kernels import KERNELS as PILLOW
from shardforge.geometry.kernels import Resampler
from shardforge.geometry.resample import resize_values
from shardforge.geometry.resize import Placement
from tests.resampling import KERNELS, weights

_UNIT = 1 << 17
_sides = st.integers(1, 90)
_names = st.sampled_from(sorted(PILLOW))


def _matrix(inputs: int, results: int, resampler: Any) -> np.ndarray:
    """Weights [results, inputs] as resizing a unit vector shows them: one column for each input."""
    vectors = np.eye(inputs, dtype=np.int16)
    return np.stack([resize_exactly(vector[:, None], (1, results), resampler)[:, 0] for vector in vectors], axis=1)


@given(inputs=_sides, results=_sides, resampler=_names)
def test_weights_are_the_kernels_in_units_and_their_sum_is_1(inputs: int, results: int, resampler: Any) -> None:
    found = _matrix(inputs, results, resampler)
    assert (found * _UNIT == np.rint(found * _UNIT)).all()
    assert (found.sum(axis=1) == 1).all()
    assert np.abs(found - weights(inputs, results, 0, inputs, KERNELS[resampler])).max() <= 1 / _UNIT


@given(height=_sides, width=_sides, rows=_sides, columns=_sides, resampler=_names, seed=st.integers(0, 1000))
def test_nothing_is_rounded(height: int, width: int, rows: int, columns: int, resampler: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.choice([1 - LIMIT, LIMIT - 1], (height, width))
    down = (_matrix(height, rows, resampler) * _UNIT).astype(np.int64)
    across = (_matrix(width, columns, resampler) * _UNIT).astype(np.int64)
    found = resize_exactly(values, (columns, rows), resampler)
    assert found.shape == (rows, columns)
    assert np.array_equal((found * _UNIT * _UNIT).astype(np.int64), down @ values @ across.T)
    # Sums in another order: the picture on its side.
    turned = resize_exactly(np.ascontiguousarray(values.T), (rows, columns), resampler)
    assert np.array_equal(turned.T, found)


@pytest.mark.parametrize("resampler", sorted(PILLOW))
@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7, 2.0, 7.9])
def test_sums_of_magnitudes_leave_room(resampler: Resampler, scale: float) -> None:
    """17 bits of value and 34 of weight leave two of 53 for how far magnitudes of weights add up beyond 1."""
    for results in (1, 2, 3, 64, 257):
        inputs = max(1, round(results * scale))
        rows = exact_resize._bands(inputs, results, resampler)
        most = max(np.abs(band.weights).sum(axis=1).max() for band in rows)
        assert most**2 < 4


@pytest.mark.parametrize("resampler", sorted(PILLOW))
@pytest.mark.parametrize(("size", "inner"), [((512, 512), (256, 256)), ((300, 200), (77, 131)), ((40, 50), (97, 50))])
def test_pillow_agrees(resampler: Resampler, size: tuple[int, int], inner: tuple[int, int]) -> None:
    values = np.random.default_rng(3).integers(-1024, 3072, size[::-1]).astype(np.int16)
    pillow = np.asarray(Image.fromarray(values.astype(np.float32)).resize(inner, PILLOW[resampler]))
    assert np.abs(resize_exactly(values, inner, resampler) - pillow).max() < 0.1


def test_wider_values_are_resized_too() -> None:
    values = np.full((20, 20), 9 * LIMIT, np.int32)
    values[:, 10:] = -LIMIT
    found = resize_values(values, Placement(20, 20, 10, 10, 10, 10), "box", 0)
    assert found.dtype == np.int32
    assert (found[:, :5] == 9 * LIMIT).all()
    assert (found[:, 5:] == -LIMIT).all()


@pytest.mark.parametrize("resampler", sorted(PILLOW))
@pytest.mark.parametrize("side", [33, 1000, 5000])
def test_results_are_right_however_much_a_picture_shrinks(resampler: Resampler, side: int) -> None:
    values = np.random.default_rng(6).choice([-32768, 32767], (side, 8)).astype(np.int16)
    for results in (1, side // 31):
        found = resize_values(values, Placement(8, side, 8, results, 8, results), resampler, 0)
        expected = weights(side, results, 0, side, KERNELS[resampler]) @ values
        # Half a unit of rounding, and errors of up to half a unit of weight each (0.29 on average), which add up as
        # the root of their number: at most 6 x 32 for Lanczos. Five standard deviations.
        assert np.abs(found - expected.clip(-32768, 32767)).max() < 0.5 + 5 * 0.29 * 32768 / _UNIT * math.sqrt(6 * 32)
