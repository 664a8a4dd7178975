"""From modality values to the stored picture."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.dicom.facts import FrameMeaning, Lut, PixelFormat, Window
from shardforge.dicom.modality import ModalityTables
from shardforge.dicom.padding import fill_padding, padding_mask
from shardforge.dicom.render import render
from shardforge.dicom.voi import VoiTables, levels

CT = np.array([[-1000, -160, -159, 0], [40, 239, 240, 3000]], np.int16)
SOFT, BRAIN = Window(40, 400), Window(40, 80)


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("inverted", [False, True])
def test_each_window_is_a_channel(dtype: str, bits: int, inverted: bool) -> None:
    values = CT.astype(dtype)
    vois = (SOFT, BRAIN, Window(0, 100, "SIGMOID"), Lut(0, 8, np.arange(256, dtype=np.uint16)))
    rendered = render(values, None, vois, VoiTables(), inverted=inverted, bits=bits)
    assert rendered.pixels.shape == (2, 4, 4)
    assert rendered.pixels.dtype == f"uint{bits}"
    assert rendered.pixels.flags.c_contiguous
    for channel, voi in enumerate(vois):
        assert np.array_equal(rendered.pixels[..., channel], levels(values, voi, bits=bits, inverted=inverted))


@pytest.mark.parametrize("inverted", [False, True])
def test_padding_is_black_whatever_the_polarity(inverted: bool) -> None:
    mask = np.zeros(CT.shape, bool)
    mask[0, 0] = mask[1, 3] = True
    rendered = render(CT, mask, [SOFT, BRAIN], VoiTables(), inverted=inverted)
    assert not rendered.pixels[mask].any()
    for channel, voi in enumerate((SOFT, BRAIN)):
        expected = levels(CT, voi, inverted=inverted)
        assert np.array_equal(rendered.pixels[~mask][:, channel], expected[~mask])


@pytest.mark.parametrize("inverted", [False, True])
def test_clipping_is_counted_among_unpadded_pixels(inverted: bool) -> None:
    rendered = render(CT, None, [SOFT, BRAIN], VoiTables(), inverted=inverted)
    # 40/400: black up to -160, white from 239 on. 40/80: black up to 0, white from 79 on.
    assert rendered.clip_low == (2 / 8, 4 / 8)
    assert rendered.clip_high == (3 / 8, 3 / 8)
    mask = np.zeros(CT.shape, bool)
    mask[0, :2] = mask[1, 3] = True
    rendered = render(CT, mask, [SOFT, BRAIN], VoiTables(), inverted=inverted)
    assert rendered.clip_low == (0, 2 / 5)
    assert rendered.clip_high == (2 / 5, 2 / 5)


def test_a_picture_of_nothing_but_padding_is_black() -> None:
    rendered = render(CT, np.ones(CT.shape, bool), [SOFT], VoiTables(), inverted=True)
    assert not rendered.pixels.any()
    assert rendered.clip_low == rendered.clip_high == (0,)


def test_monochrome_twins_show_the_same() -> None:
    """Stored values and their complements, windows mirrored alike, padding at the dark end of each."""
    fmt1 = PixelFormat(40, 50, 1, 16, 12, 11, False, False, "MONOCHROME1")
    stored = np.random.default_rng(0).integers(0, 4096, (40, 50)).astype(np.uint16)
    pictures = []
    for inverted in (False, True):
        values = 4095 - stored if inverted else stored
        padding = (4065, 4095) if inverted else (0, 30)
        window = Window(4096 - 1800 if inverted else 1800, 1500)
        meaning = FrameMeaning(padding=padding, inverted=inverted)
        mask = padding_mask(values, meaning)
        filled = fill_padding(ModalityTables().apply(values, fmt1, meaning), mask, inverted=inverted)
        pictures.append(render(filled, mask, [window], VoiTables(), inverted=inverted).pixels)
        # The filling too: it is what a resampler mixes in at the border.
        pictures.append(render(filled, None, [window], VoiTables(), inverted=inverted).pixels)
    assert np.array_equal(pictures[0], pictures[2])
    assert np.array_equal(pictures[1], pictures[3])
