"""The breast crop on made mammograms, whose shape is known: half an ellipse on one edge, markers, air with noise."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pydicom
import pytest
from numpy.typing import NDArray

from shardforge.geometry.breast_crop import locate_breast

HEIGHT, WIDTH = 1000, 800
CENTRE, TALL, DEEP = 480, 330, 420


def _mammogram(*, side: str = "left", shift: int = 0, air: float = 0, noise: float = 0) -> NDArray[np.uint8]:
    """Rows 150..810 and the 420 columns at one edge are breast: brighter inside, dim at the skin."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    inside = 1 - ((y - CENTRE) / TALL) ** 2 - ((x - shift) / DEEP) ** 2
    picture = np.where((inside > 0) & (x >= shift), 40 + 150 * np.sqrt(np.clip(inside, 0, 1)), air)
    picture = picture + np.random.default_rng(5).normal(0, noise, picture.shape) if noise else picture
    marked = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
    cv2.putText(marked, "L-MLO", (560, 120), cv2.FONT_HERSHEY_SIMPLEX, 2.0, 255, 6)
    cv2.rectangle(marked, (640, 900), (780, 980), 255, -1)
    return marked if side == "left" else np.ascontiguousarray(marked[:, ::-1])


def _check(box: tuple[int, int, int, int], expected: tuple[int, int, int, int]) -> None:
    """No more than 6 pixels from it: two coarse pixels and the dim skin."""
    assert np.abs(np.subtract(box, expected)).max() <= 6, (box, expected)


@pytest.mark.parametrize(("air", "noise"), [(0, 0), (0, 6), (25, 0), (25, 8)])
def test_the_box_holds_the_breast_and_no_marker(air: float, noise: float) -> None:
    found = locate_breast(_mammogram(air=air, noise=noise), margin=0)
    _check(found.box, (0, CENTRE - TALL, DEEP, CENTRE + TALL))
    assert found.chest_wall == "left"


def test_the_chest_wall_may_be_on_the_right() -> None:
    found = locate_breast(_mammogram(side="right"), margin=0)
    _check(found.box, (WIDTH - DEEP, CENTRE - TALL, WIDTH, CENTRE + TALL))
    assert found.chest_wall == "right"


def test_the_margin_is_a_part_of_the_longer_side_and_stays_inside() -> None:
    bare, wide = (locate_breast(_mammogram(), margin=margin).box for margin in (0, 0.05))
    _check(wide, (0, bare[1] - 50, bare[2] + 50, bare[3] + 50))
    assert locate_breast(_mammogram(), margin=2).box == (0, 0, WIDTH, HEIGHT)


def test_padding_is_neither_air_nor_breast() -> None:
    shift = 100
    picture = _mammogram(shift=shift, air=30, noise=3)
    padding = np.zeros(picture.shape, np.bool_)
    padding[:, :shift] = padding[:, 700:] = True
    picture[padding] = 0
    found = locate_breast(picture, margin=0, padding=padding)
    _check(found.box, (shift, CENTRE - TALL, shift + DEEP, CENTRE + TALL))
    assert found.chest_wall == "left"
    white = np.where(padding, np.uint8(255), picture)
    assert locate_breast(white, margin=0, padding=padding) == found


@pytest.mark.parametrize("level", [0, 128, 255])
def test_an_empty_picture_stays_whole(level: int) -> None:
    empty = np.full((300, 200), level, np.uint8)
    assert locate_breast(empty).box == (0, 0, 200, 300)
    assert locate_breast(empty).chest_wall is None
    assert locate_breast(empty, padding=np.ones(empty.shape, np.bool_)).box == (0, 0, 200, 300)


def test_a_lone_marker_is_no_breast() -> None:
    picture = np.zeros((HEIGHT, WIDTH), np.uint8)
    cv2.putText(picture, "R", (600, 120), cv2.FONT_HERSHEY_SIMPLEX, 2.0, 255, 6)
    assert locate_breast(picture).box == (0, 0, WIDTH, HEIGHT)


@pytest.mark.parametrize("shape", [(1, 1), (1, 900), (3, 2), (2000, 1)])
def test_any_shape_gives_a_box_inside(shape: tuple[int, int]) -> None:
    picture = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    left, top, right, bottom = locate_breast(picture).box
    assert 0 <= left < right <= shape[1]
    assert 0 <= top < bottom <= shape[0]


def test_both_polarities_of_one_image_give_one_box(corpus: Path) -> None:
    """Displayed as PS3.3 C.7.6.3.1.2 has it, in the plain arithmetic of C.11.2.1.2.1, padding black."""
    found = []
    for name in ("made_padding_range.dcm", "made_padding_range_mono1.dcm"):
        ds = pydicom.dcmread(corpus / "dicom" / "voi" / name)
        values = ds.pixel_array.astype(np.float64)
        ends = sorted((ds.PixelPaddingValue, ds.PixelPaddingRangeLimit))
        padding = (values >= ends[0]) & (values <= ends[1])
        low, high = values[~padding].min(), values[~padding].max()
        shown = np.rint((values - low) / (high - low) * 255).clip(0, 255)
        shown = 255 - shown if ds.PhotometricInterpretation == "MONOCHROME1" else shown
        shown[padding] = 0
        found.append(locate_breast(shown.astype(np.uint8), padding=padding))
    assert found[0].box == found[1].box
