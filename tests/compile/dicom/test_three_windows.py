"""Three windows by one look-up: the same as each window by itself, and exact counts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shardforge.compile.dicom.three_windows import render_three
from shardforge.dicom.facts import Lut, Window
from shardforge.dicom.voi import Voi, VoiTables, levels

VOIS: tuple[Voi, ...] = (Window(40, 400), Window(-600, 1500, "SIGMOID"), Lut(0, 8, np.arange(256, dtype=np.uint16)))
PICTURES = {
    "tomography": (-1024, 3072),
    "whole int16": (-32768, 32767),
    "negative": (-2000, -1000),
    "positive": (7, 900),
    "one value": (-5, -5),
}


def picture(name: str) -> NDArray[np.int16]:
    low, high = PICTURES[name]
    values = np.random.default_rng(0).integers(low, high, (61, 47), np.int16, endpoint=True)
    values[0, 0], values[-1, -1] = low, high
    return values


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("name", PICTURES)
def test_every_channel_is_its_window_and_all_pixels_are_counted(name: str, inverted: bool, padded: bool) -> None:
    values = picture(name)
    mask = np.arange(values.size).reshape(values.shape) % 3 == 0 if padded else None
    shown = np.ones(values.shape, bool) if mask is None else ~mask
    found, counts = render_three(values, mask, VOIS, VoiTables(), inverted=inverted)
    assert found.pixels.flags.c_contiguous
    for channel, voi in enumerate(VOIS):
        plane = np.where(shown, levels(values, voi, inverted=inverted), 0)
        assert np.array_equal(found.pixels[..., channel], plane)
        assert np.array_equal(counts[channel], np.bincount(plane.ravel(), minlength=256))
        dark, bright = (255, 0) if inverted else (0, 255)
        assert found.clip_low[channel] == np.count_nonzero(plane[shown] == dark) / np.count_nonzero(shown)
        assert found.clip_high[channel] == np.count_nonzero(plane[shown] == bright) / np.count_nonzero(shown)
    assert counts.dtype == np.int64


def test_a_part_of_a_picture_and_one_that_is_all_padding() -> None:
    part = picture("tomography")[3:40, 5:30]
    found, counts = render_three(part, None, VOIS, VoiTables(), inverted=False)
    assert np.array_equal(found.pixels[..., 0], levels(part, VOIS[0]))
    assert counts.sum() == 3 * part.size
    found, counts = render_three(part, np.ones(part.shape, bool), VOIS, VoiTables(), inverted=True)
    assert not found.pixels.any()
    assert counts[:, 0].tolist() == [part.size] * 3
    assert found.clip_low == found.clip_high == (0, 0, 0)
