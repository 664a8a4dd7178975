"""Statistics of 16-bit pixels against numpy on the pixels themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shardforge.shards import moments
from shardforge.shards.statistics import LEVELS, PixelStatistics, merge, width


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("most", [65536, 700])
def test_mean_and_std_are_those_of_the_values_not_of_their_high_bytes(channels: int, most: int) -> None:
    pictures = np.random.default_rng(4).integers(0, most, (5, 31, 47, channels), dtype=np.uint16)
    tallies = [moments.tally(picture) for picture in pictures]
    found = PixelStatistics.of(merge(tallies, channels, 16))
    assert found is not None
    scaled = pictures.reshape(-1, channels) / 65535
    np.testing.assert_allclose(found.mean, scaled.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, scaled.std(0), rtol=1e-9)
    high = pictures.reshape(-1, channels) >> 8
    counts = np.stack([np.bincount(plane, minlength=LEVELS) for plane in high.T])
    assert np.array_equal(np.array(found.histogram), counts)


def test_sums_are_exact_beyond_64_bits() -> None:
    white = moments.tally(np.full((2000, 2000, 1), 65535, np.uint16))
    total = merge([white] * 2000, 1, 16)
    assert total.shape == (1, width(16))
    n = 2000 * 2000 * 2000
    assert moments.sums_of(total[0, LEVELS:].tolist()) == (n * 65535, n * 65535**2)
    found = PixelStatistics.of(total)
    assert found is not None
    assert (found.mean, found.std) == ((1.0,), (0.0,))


def test_8_bit_pixels_scaled_to_16_have_the_statistics_they_had() -> None:
    pixels = np.random.default_rng(6).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    counts = np.stack([np.bincount(pixels[..., c].ravel(), minlength=LEVELS) for c in range(3)])
    plain, raised = PixelStatistics.of(counts), PixelStatistics.of(moments.tally(pixels.astype(np.uint16) * 257))
    assert plain is not None
    assert raised is not None
    assert plain.histogram == raised.histogram
    assert plain.sums is None
    np.testing.assert_allclose(plain.mean, raised.mean, rtol=1e-14)
    np.testing.assert_allclose(plain.std, raised.std, rtol=1e-14)


def test_sums_that_cannot_belong_to_the_counts_are_none() -> None:
    found = PixelStatistics.of(moments.tally(np.arange(600, dtype=np.uint16).reshape(20, 30, 1)))
    assert found is not None
    assert found.sums is not None
    assert PixelStatistics.of_sums(found.histogram, found.sums) == found
    ((first, second),) = found.sums
    for sums in (((first + 600 * 256, second),), ((first, 0),), ((-1, second),), ((first,),), ()):
        assert PixelStatistics.of_sums(found.histogram, sums) is None
    assert PixelStatistics.of_sums(found.histogram, ((first + 1, second),)) != replace(found, sums=((first, second),))
