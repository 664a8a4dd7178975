"""Statistics from histograms against numpy on the pixels themselves."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.shards.statistics import LEVELS, PixelStatistics, merge


def histogram(pixels: np.ndarray) -> np.ndarray:
    planes = pixels.reshape(-1, pixels.shape[-1])
    return np.stack([np.bincount(plane, minlength=LEVELS) for plane in planes.T])


@pytest.mark.parametrize("channels", [1, 3])
def test_mean_and_std_are_those_of_the_pixels(channels: int) -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (5, 37, 41, channels), np.uint8)
    pixels[:, :9] //= 3
    found = PixelStatistics.of(histogram(pixels))
    assert found is not None
    scaled = pixels.reshape(-1, channels) / 255
    np.testing.assert_allclose(found.mean, scaled.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, scaled.std(0), rtol=1e-12)
    assert np.array(found.histogram).sum() == pixels.size


def test_one_constant_level_has_no_deviation() -> None:
    found = PixelStatistics.of(histogram(np.full((7, 3, 3), 51, np.uint8)))
    assert found is not None
    assert found.mean == (0.2, 0.2, 0.2)
    assert found.std == (0.0, 0.0, 0.0)


def test_counts_near_the_end_of_64_bits_do_not_overflow() -> None:
    counts = np.zeros((1, LEVELS), np.int64)
    counts[0, [0, 255]] = 2**62
    found = PixelStatistics.of(counts)
    assert found is not None
    assert (found.mean, found.std) == ((0.5,), (0.5,))


def test_no_pixels_have_no_statistics() -> None:
    assert PixelStatistics.of(np.zeros((3, LEVELS), np.int64)) is None


def test_merging_in_any_order_counts_all_pixels() -> None:
    rng = np.random.default_rng(4)
    parts = [rng.integers(0, 256, (11, 13, 3), np.uint8) for _ in range(5)]
    whole = histogram(np.concatenate(parts))
    for order in (parts, parts[::-1], parts[2:] + parts[:2]):
        np.testing.assert_array_equal(merge(map(histogram, order), 3), whole)
