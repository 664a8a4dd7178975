from __future__ import annotations

import numpy as np
import pytest

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import read, rgb_scene, tiff, tiff_of

SCENE = rgb_scene(9, 7)
GREY = np.ascontiguousarray(SCENE[:, :, 0])


def _reason(data: bytes) -> Reason:
    with pytest.raises(SampleError) as caught:
        read(data)
    return caught.value.reason


def test_black_is_zero_and_white_is_zero_are_opposites() -> None:
    assert np.array_equal(read(tiff_of(GREY, 1), 1).pixels[:, :, 0], GREY)
    assert np.array_equal(read(tiff_of(GREY, 0), 1).pixels[:, :, 0], 255 - GREY)


def test_ink_becomes_light() -> None:
    ink = np.array([[[0, 0, 0, 0], [255, 0, 0, 0], [0, 255, 255, 51], [0, 0, 0, 255]]], np.uint8)
    assert read(tiff_of(ink, 5)).pixels.tolist() == [[[255, 255, 255], [0, 255, 255], [204, 0, 0], [0, 0, 0]]]


def test_palette_of_16_bit_entries_gives_colours() -> None:
    indices = np.array([[0, 1, 2]], np.uint8)
    table = np.zeros((3, 256), np.uint16)
    table[:, :3] = [[65535, 0, 257], [0, 65535, 2 * 257], [0, 0, 3 * 257]]
    data = tiff_of(indices, 3, t320=(3, table.reshape(-1).tolist()))
    assert read(data).pixels.tolist() == [[[255, 0, 0], [0, 255, 0], [1, 2, 3]]]


def test_index_outside_the_palette_is_corrupt() -> None:
    assert _reason(tiff_of(np.array([[5]], np.uint8), 3, t320=(3, [0] * 6))) is Reason.CORRUPT


def test_ycbcr_without_compression_is_converted_and_turned() -> None:
    # BT.601 full range: pure red is Y 76, Cb 85, Cr 255; pure blue Y 29, Cb 255, Cr 107.
    pixels = np.array([[[76, 85, 255], [29, 255, 107]]], np.uint8)
    data = tiff_of(pixels, 6, t530=(3, [1, 1]), t274=(3, [3]))
    assert np.abs(read(data).pixels[0].astype(int) - [[0, 0, 255], [255, 0, 0]]).max() <= 2


@pytest.mark.parametrize(("kind", "signed"), [(8, True), (9, False)])
def test_cielab_is_converted(kind: int, signed: bool) -> None:
    # L* 53.24, a* 80.09, b* 67.20 (D65) is sRGB red; adapted to D50: 54.29, 80.80, 69.89.
    lab = np.array([[[round(54.29 * 2.55), 81, 70], [255, 0, 0], [0, 0, 0]]])
    stored = lab if signed else lab + np.array([0, 128, 128])
    pixels = read(tiff_of(stored.astype(np.uint8), kind)).pixels[0].astype(int)
    assert np.abs(pixels - [[255, 0, 0], [255, 255, 255], [0, 0, 0]]).max() <= 6


def test_extra_sample_is_alpha_only_where_it_says_so() -> None:
    rgba = np.array([[[100, 50, 20, 128], [200, 100, 40, 255]]], np.uint8)
    assert read(tiff_of(rgba, 2, t338=(3, [0]))).pixels[0, 0].tolist() == [100, 50, 20]
    straight = read(tiff_of(rgba, 2, t338=(3, [2])), background=(0, 0, 0)).pixels[0, 0]
    assert np.abs(straight.astype(int) - [50, 25, 10]).max() <= 1
    associated = read(tiff_of(rgba, 2, t338=(3, [1])), background=(255, 255, 255)).pixels[0, 0]
    assert np.abs(associated.astype(int) - [227, 177, 147]).max() <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, np.uint32])
def test_values_without_a_range_are_stretched_and_flagged(dtype: type) -> None:
    values = np.array([[10, 20, 30, 110]]).astype(dtype)
    picture = read(tiff_of(values, 1), 1)
    assert picture.pixels[0, :, 0].tolist() == [0, 26, 51, 255]  # (v - 10) / 100 · 255, rounded half up
    assert picture.flags == (Flag.DEPTH_REDUCED, Flag.RANGE_STRETCHED)


def test_what_is_not_finite_is_black() -> None:
    values = np.array([[np.nan, 1.0, 2.0, np.inf, -np.inf]], np.float32)
    assert read(tiff_of(values, 1), 1).pixels[0, :, 0].tolist() == [0, 0, 255, 0, 0]
    assert read(tiff_of(values[:, :1], 1), 1).pixels.tolist() == [[[0]]]


def test_planes_one_after_the_other_equal_interleaved_samples() -> None:
    tags = {256: (3, [9]), 257: (3, [7]), 258: (3, [8, 8, 8]), 262: (3, [2]), 277: (3, [3]), 278: (3, [7])}
    planes = np.ascontiguousarray(SCENE.transpose(2, 0, 1)).tobytes()
    data = tiff({**tags, 284: (3, [2])}, planes)
    # One strip per plane.
    strip = len(planes) // 3
    at = data.index((273).to_bytes(2, "little") + b"\x04\0\x01\0\0\0")
    extra = len(data)
    offsets = b"".join((8 + i * strip).to_bytes(4, "little") for i in range(3))
    sizes = strip.to_bytes(4, "little") * 3
    data = data[: at + 4] + b"\x03\0\0\0" + extra.to_bytes(4, "little") + data[at + 12 :]
    at = data.index((279).to_bytes(2, "little") + b"\x04\0\x01\0\0\0")
    data = data[: at + 4] + b"\x03\0\0\0" + (extra + 12).to_bytes(4, "little") + data[at + 12 :] + offsets + sizes
    assert np.array_equal(read(data).pixels, SCENE)


def test_big_endian_is_read() -> None:
    tags = {256: (3, [9]), 257: (3, [7]), 258: (3, [16]), 262: (3, [1]), 277: (3, [1]), 278: (3, [7])}
    values = GREY.astype(np.uint16) * 257
    assert np.array_equal(read(tiff(tags, values.astype(">u2").tobytes(), ">"), 1).pixels[:, :, 0], GREY)


def test_camera_raw_is_not_mistaken_for_its_preview() -> None:
    assert _reason(tiff_of(SCENE, 2, t254=(4, [1]), t330=(4, [8]))) is Reason.UNSUPPORTED
    assert _reason(tiff_of(SCENE, 2, t50706=(1, [1, 4, 0, 0]))) is Reason.UNSUPPORTED


def test_damage_has_its_reason() -> None:
    good = tiff_of(SCENE, 2)
    assert _reason(good[:100]) is Reason.TRUNCATED
    assert _reason(tiff_of(SCENE, 2, t256=(3, [0]))) is Reason.BAD_HEADER
    assert _reason(tiff_of(SCENE, 2, t257=(4, [2**31]))) is Reason.BAD_HEADER
    assert _reason(tiff_of(SCENE, 2, t256=(4, [60000]), t257=(4, [60000]))) is Reason.OVER_BUDGET
    assert _reason(tiff_of(SCENE, 2, t277=(3, [999]))) is Reason.CORRUPT
    assert _reason(tiff_of(SCENE, 32803)) is Reason.UNSUPPORTED


def test_memory_of_wide_samples_counts() -> None:
    # 150 million pixels are within the limits, but not as four doubles each.
    wide = tiff_of(np.zeros((1, 1, 4), np.float64), 5, t256=(4, [15000]), t257=(4, [10000]))
    assert _reason(wide) is Reason.OVER_BUDGET
