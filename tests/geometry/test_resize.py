from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardforge.errors import SampleError, UsageError
from shardforge.geometry.resize import Placement, place, resize_image, resize_mask
from shardforge.shards.catalogue import Reason

SIDES = st.integers(1, 6000)
MODES = st.sampled_from(["shortest", "longest", "pad"])
RESAMPLERS: list[Any] = ["lanczos", "bicubic", "bilinear", "box"]


def _placement(width: int, height: int, mode: Any, size: Any, enlarge: bool = False) -> Placement:
    return place(width, height, mode=mode, size=size, enlarge=enlarge, max_pixels=10**12)


@pytest.mark.parametrize(
    ("source", "mode", "size", "enlarge", "inner"),
    [
        ((500, 375), "shortest", 256, False, (341, 256)),
        ((375, 500), "shortest", 256, False, (256, 341)),
        ((500, 375), "longest", 256, False, (256, 192)),
        ((375, 500), "longest", 256, False, (192, 256)),
        ((200, 100), "shortest", 256, False, (200, 100)),
        ((200, 100), "longest", 256, False, (200, 100)),
        ((200, 100), "shortest", 256, True, (512, 256)),
        ((200, 100), "longest", 256, True, (256, 128)),
        ((1, 5000), "shortest", 256, False, (1, 5000)),
        ((5000, 1), "shortest", 256, False, (5000, 1)),
        ((1, 5000), "longest", 256, False, (1, 256)),
        ((5000, 1), "longest", 256, False, (256, 1)),
        ((3, 2), "longest", 1, False, (1, 1)),
        ((256, 256), "shortest", 256, False, (256, 256)),
        ((4, 3), "longest", 2, False, (2, 2)),  # 1.5 rounds up
        ((100, 50), "none", 7, False, (100, 50)),
    ],
)
def test_size_of_the_result(
    source: tuple[int, int], mode: str, size: int, enlarge: bool, inner: tuple[int, int]
) -> None:
    placement = _placement(*source, mode, size, enlarge)
    assert (placement.inner_width, placement.inner_height) == inner
    assert (placement.width, placement.height) == inner
    assert (placement.left, placement.top) == (0, 0)
    assert placement.identity == (inner == source)


@pytest.mark.parametrize(
    ("source", "size", "enlarge", "inner", "corner"),
    [
        ((400, 200), 100, False, (100, 50), (0, 25)),
        ((200, 400), 100, False, (50, 100), (25, 0)),
        ((40, 20), 100, False, (40, 20), (30, 40)),
        ((40, 20), 100, True, (100, 50), (0, 25)),
        ((41, 20), 100, False, (41, 20), (29, 40)),
        ((400, 400), (100, 60), False, (60, 60), (20, 0)),
        ((5000, 1), 100, False, (100, 1), (0, 49)),
    ],
)
def test_pad_centres_the_picture_on_its_canvas(
    source: tuple[int, int], size: Any, enlarge: bool, inner: tuple[int, int], corner: tuple[int, int]
) -> None:
    placement = _placement(*source, "pad", size, enlarge)
    assert (placement.width, placement.height) == (size if isinstance(size, tuple) else (size, size))
    assert (placement.inner_width, placement.inner_height) == inner
    assert (placement.left, placement.top) == corner
    assert not placement.identity


def test_exact_stretches_and_refuses_to_enlarge_one_side() -> None:
    assert _placement(300, 200, "exact", (100, 150)).inner_height == 150
    assert _placement(300, 200, "exact", 200).inner_width == 200
    for source in ((300, 100), (50, 200)):
        with pytest.raises(SampleError) as caught:
            _placement(*source, "exact", (100, 150))
        assert caught.value.reason is Reason.TOO_SMALL
        assert _placement(*source, "exact", (100, 150), True).width == 100


def test_result_over_the_pixel_budget_is_refused() -> None:
    with pytest.raises(SampleError) as caught:
        place(1, 5000, mode="shortest", size=256, enlarge=True, max_pixels=200_000_000)
    assert caught.value.reason is Reason.OVER_BUDGET
    assert place(1, 5000, mode="shortest", size=100, enlarge=True, max_pixels=50_000_000).height == 500_000


@pytest.mark.parametrize(("mode", "size"), [("shortest", (3, 4)), ("longest", (3, 4)), ("pad", 0), ("exact", (5, 0))])
def test_size_that_does_not_fit_the_mode_is_a_usage_error(mode: str, size: Any) -> None:
    with pytest.raises(UsageError):
        _placement(10, 10, mode, size)


@given(SIDES, SIDES, MODES, st.integers(1, 2000))
def test_never_enlarges_unless_asked(width: int, height: int, mode: str, size: int) -> None:
    placement = _placement(width, height, mode, size)
    assert 1 <= placement.inner_width <= width
    assert 1 <= placement.inner_height <= height


@given(SIDES, SIDES, MODES, st.integers(1, 2000), st.booleans())
def test_aspect_is_kept_within_half_a_pixel(width: int, height: int, mode: str, size: int, enlarge: bool) -> None:
    placement = _placement(width, height, mode, size, enlarge)
    by_width = Fraction(placement.inner_width, width)
    by_height = Fraction(placement.inner_height, height)
    # One side has the exact scale; the other is off by at most half a pixel, unless that would leave nothing of it.
    off_height = abs(placement.inner_height - height * by_width)
    off_width = abs(placement.inner_width - width * by_height)
    thin = min(placement.inner_width, placement.inner_height) == 1
    assert min(off_height, off_width) <= (1 if thin else Fraction(1, 2))


@given(SIDES, SIDES, st.integers(1, 2000), st.integers(1, 2000), st.booleans())
def test_pad_stays_inside_and_fills_one_side_or_does_not_shrink(
    width: int, height: int, box_width: int, box_height: int, enlarge: bool
) -> None:
    placement = _placement(width, height, "pad", (box_width, box_height), enlarge)
    assert 0 <= placement.left <= box_width - placement.inner_width
    assert 0 <= placement.top <= box_height - placement.inner_height
    assert abs(2 * placement.left + placement.inner_width - box_width) <= 1
    assert abs(2 * placement.top + placement.inner_height - box_height) <= 1
    filled = placement.inner_width == box_width or placement.inner_height == box_height
    assert filled or (placement.inner_width, placement.inner_height) == (width, height)


@given(SIDES, SIDES, st.integers(1, 2000), st.booleans())
def test_named_side_gets_the_size(width: int, height: int, size: int, enlarge: bool) -> None:
    for mode, side in (("shortest", min), ("longest", max)):
        placement = _placement(width, height, mode, size, enlarge)
        wanted = size if enlarge else min(size, side(width, height))
        assert side(placement.width, placement.height) == wanted


def test_scale_and_offset_map_edges_to_edges() -> None:
    placement = _placement(400, 200, "pad", 100)
    assert (placement.scale_x, placement.scale_y) == (0.25, 0.25)
    assert (placement.offset_x, placement.offset_y) == (0.0, 25.0)
    assert 400 * placement.scale_x + placement.offset_x == 100
    assert 200 * placement.scale_y + placement.offset_y == 75


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("factor", [2, 3, 4, 8])
def test_box_kernel_is_the_mean_of_each_block(channels: int, factor: int) -> None:
    pixels = np.random.default_rng(factor).integers(0, 256, (24, 48, channels), np.uint8)
    placement = _placement(48, 24, "exact", (48 // factor, 24 // factor))
    resized = resize_image(pixels, placement, "box", (0, 0, 0))
    blocks = pixels.reshape(24 // factor, factor, 48 // factor, factor, channels).mean(axis=(1, 3))
    # The kernel is applied to rows and columns in turn, with rounding in between.
    assert np.abs(resized - blocks).max() <= 1.01
    assert resized.shape == (24 // factor, 48 // factor, channels)


@pytest.mark.parametrize("resampler", RESAMPLERS)
def test_every_kernel_is_antialiased(resampler: Any) -> None:
    # A checkerboard of single pixels: whoever picks or interpolates neighbours only gets black, white or stripes.
    board = np.indices((240, 240)).sum(axis=0) % 2 * 255
    pixels = np.repeat(board[:, :, None].astype(np.uint8), 3, axis=2)
    resized = resize_image(pixels, _placement(240, 240, "longest", 50), resampler, (0, 0, 0))
    assert np.abs(resized[2:-2, 2:-2].astype(int) - 127.5).max() <= 26


@pytest.mark.parametrize("resampler", RESAMPLERS)
def test_flat_colour_stays(resampler: Any) -> None:
    pixels = np.full((77, 53, 3), (12, 200, 255), np.uint8)
    resized = resize_image(pixels, _placement(53, 77, "shortest", 20), resampler, (0, 0, 0))
    assert (resized == (12, 200, 255)).all()


def test_linear_ramp_keeps_its_values_at_pixel_centres() -> None:
    # value(x) = x + 1/2 at pixel centres; the centre of a reduced pixel is the mean of what it covers.
    pixels = np.tile(np.arange(240, dtype=np.uint8)[None, :, None], (240, 1, 1))
    resized = resize_image(pixels, _placement(240, 240, "longest", 60), "bilinear", (0, 0, 0))
    wanted = np.arange(60) * 4 + 1.5
    assert np.abs(resized[30, 3:-3, 0] - wanted[3:-3]).max() <= 1


@pytest.mark.parametrize("channels", [1, 3])
def test_padding_has_the_background(channels: int) -> None:
    pixels = np.full((2, 4, channels), 9, np.uint8)
    canvas = resize_image(pixels, _placement(4, 2, "pad", (6, 4)), "lanczos", (255, 0, 0))
    wanted = np.empty((4, 6, channels), np.uint8)
    wanted[:] = (255, 0, 0) if channels == 3 else 76
    wanted[1:3, 1:5] = 9
    assert np.array_equal(canvas, wanted)


def test_nothing_is_copied_where_nothing_changes() -> None:
    pixels, mask = np.zeros((3, 4, 3), np.uint8), np.zeros((3, 4), np.uint16)
    placement = _placement(4, 3, "none", 1)
    assert resize_image(pixels, placement, "lanczos", (0, 0, 0)) is pixels
    assert resize_mask(mask, placement) is mask


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
@given(width=st.integers(1, 40), height=st.integers(1, 40), to=st.tuples(st.integers(1, 50), st.integers(1, 50)))
def test_mask_takes_the_label_under_each_pixel_centre(
    dtype: type, width: int, height: int, to: tuple[int, int]
) -> None:
    mask = np.arange(width * height).reshape(height, width).astype(dtype)
    resized = resize_mask(mask, _placement(width, height, "exact", to, True))
    assert resized.dtype == dtype
    for row in range(to[1]):
        for column in range(to[0]):
            y = int((row + Fraction(1, 2)) * height / to[1])
            x = int((column + Fraction(1, 2)) * width / to[0])
            assert resized[row, column] == mask[y, x]


def test_mask_lies_where_the_image_lies() -> None:
    labels = np.zeros((40, 80), np.uint8)
    labels[10:30, 20:60] = 200
    placement = _placement(80, 40, "pad", 40)
    mask = resize_mask(labels, placement, fill=7)
    image = resize_image(labels[:, :, None], placement, "box", (7, 7, 7))[:, :, 0]
    assert np.array_equal(mask, image)
    assert (mask[:10] == 7).all()
    assert (mask[30:] == 7).all()


def test_pixels_of_another_size_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="shape"):
        resize_image(np.zeros((3, 3, 3), np.uint8), _placement(4, 3, "longest", 2), "box", (0, 0, 0))
