"""16-bit decoding against the corpus, arithmetic in float64, and the 8-bit path."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs.colour16 import composite16, luma16, to_srgb16
from shardforge.codecs.decode import Picture, decode
from shardforge.shards.catalogue import Flag
from tests.codecs.image_files import LIMITS, corpus_file, exif, png_of, rgb_scene, tiff_of
from tests.codecs.test_colour import _curve, _linear, _p3_as_srgb, _p3_profile

CHANCE = np.random.default_rng(16)
DEEP = CHANCE.integers(0, 65536, (12, 17, 3), dtype=np.uint16)


def deep(data: bytes, channels: Any = 3, background: tuple[int, int, int] = (255, 255, 255)) -> Picture:
    picture = decode(data, channels=channels, background=background, limits=LIMITS, depth=16)
    assert picture.pixels.dtype == np.uint16
    assert picture.pixels.flags.c_contiguous
    return picture


def expected_of(corpus: Path, name: str) -> dict[str, Any]:
    for line in (corpus / "expected.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        if fact["path"] == f"images/{name}":
            return dict(fact["expect"])
    raise KeyError(name)


GREY = ["depth/12in16bit.tif", "depth/16_bit_binary.pgm", "depth/16bit.MM.deflate.tif", "depth/16bit.cropped.jp2"]
GREY += ["depth/16bit.cropped.tif", "depth/made_gray16.png", "depth/uint16_1_4660.tif", "formats/hopper_16bit.pgm"]


@pytest.mark.parametrize("name", GREY)
def test_every_grey_16_bit_value_of_the_corpus_is_kept(corpus: Path, name: str) -> None:
    raw = expected_of(corpus, name)["raw16"]
    pixels = deep(corpus_file(corpus, name), channels=1).pixels[:, :, 0]
    assert list(pixels.shape) == raw["shape"]
    assert (int(pixels.min()), int(pixels.max())) == (raw["min"], raw["max"])
    assert hashlib.sha256(pixels.astype("<u2").tobytes()).hexdigest() == raw["sha256"]


@pytest.mark.parametrize("name", ["depth/made_rgb16.png", "depth/tiff_16bit_RGB.tiff"])
def test_every_colour_16_bit_value_of_the_corpus_is_kept(corpus: Path, name: str) -> None:
    raw = expected_of(corpus, name)["raw16"]
    picture = deep(corpus_file(corpus, name))
    assert hashlib.sha256(picture.pixels.astype("<u2").tobytes()).hexdigest() == raw["sha256"]
    assert Flag.DEPTH_RAISED not in picture.flags
    assert Flag.DEPTH_REDUCED not in picture.flags


def test_12_bits_are_scaled_to_16(corpus: Path) -> None:
    grey = deep(corpus_file(corpus, "depth/12bit.cropped.tif"), channels=1)
    for row, column, value in expected_of(corpus, "depth/12bit.cropped.tif")["raw16"]["at"]:
        assert grey.pixels[row, column, 0] == round(value * 65535 / 4095)
    assert Flag.DEPTH_RAISED in grey.flags
    colours = deep(corpus_file(corpus, "jpeg/monkey12.jpg")).pixels
    for row, column, value in expected_of(corpus, "jpeg/monkey12.jpg")["rgb12"]["at"]:
        assert np.abs(colours[row, column] - np.array(value) * 65535 / 4095).max() <= 17


@pytest.mark.parametrize("channels", [1, 3])
def test_8_bits_become_257_times_as_much_and_are_flagged(channels: int) -> None:
    scene = rgb_scene() if channels == 3 else rgb_scene()[:, :, 0]
    picture = deep(png_of(scene), channels)
    assert np.array_equal(picture.pixels, scene.reshape(*scene.shape[:2], channels).astype(np.uint16) * 257)
    assert picture.flags == (Flag.DEPTH_RAISED,)
    assert not picture.untouched


def test_a_jpeg_is_257_times_its_8_bit_self() -> None:
    data = simplejpeg.encode_jpeg(rgb_scene(64, 48), 90)
    assert np.array_equal(deep(data).pixels, simplejpeg.decode_jpeg(data).astype(np.uint16) * 257)


def test_a_deep_png_is_untouched_and_can_be_passed_through() -> None:
    picture = deep(png_of(DEEP))
    assert np.array_equal(picture.pixels, DEEP)
    assert picture.flags == ()
    assert picture.untouched


def test_orientation_and_inverted_grey_keep_every_bit() -> None:
    turned = deep(png_of(DEEP, [(b"eXIf", exif(6))])).pixels
    assert np.array_equal(turned, np.rot90(DEEP, -1))
    inverted = deep(tiff_of(DEEP[:, :, 0], 0), channels=1).pixels[:, :, 0]
    assert np.array_equal(inverted, 65535 - DEEP[:, :, 0])


def test_floats_are_stretched_over_the_whole_range() -> None:
    values = np.linspace(-3, 5, 50, dtype=np.float32).reshape(5, 10)
    picture = deep(tiff_of(values, 1), channels=1)
    assert np.abs(picture.pixels[:, :, 0] - (values.astype(float) + 3) / 8 * 65535).max() <= 0.51
    assert Flag.RANGE_STRETCHED in picture.flags


def test_transparency_is_laid_on_the_background_as_in_float64() -> None:
    alpha = CHANCE.integers(0, 65536, DEEP.shape[:2], dtype=np.uint16)
    alpha[0, :2] = 0, 65535
    found = deep(png_of(np.dstack([DEEP, alpha])), background=(10, 200, 255)).pixels
    share = alpha[..., None] / 65535
    expected = DEEP * share + np.array([10, 200, 255]) * 257 * (1 - share)
    assert np.abs(found - expected).max() <= 0.5001
    premultiplied = np.floor(DEEP * share).astype(np.uint16)
    found = composite16(premultiplied, alpha, (2570, 51400, 65535), premultiplied=True)
    assert np.abs(found - expected).max() <= 1.6


def test_luma_is_that_of_bt601_in_float64() -> None:
    grey = luma16(DEEP)
    # The weights are rounded to 1/65536.
    assert np.abs(grey - DEEP @ np.array([0.299, 0.587, 0.114])).max() <= 1.1
    assert luma16(np.full((1, 1, 3), 65535, np.uint16)) == 65535
    assert np.array_equal(deep(png_of(DEEP), channels=1).pixels[:, :, 0], grey)


def test_a_profile_converts_at_full_depth_as_by_matrix_arithmetic() -> None:
    pixels = np.random.default_rng(2).integers(90 * 257, 170 * 257, (20, 20, 3), np.uint16)
    converted, flags = to_srgb16(pixels, "rgb", _p3_profile())
    assert flags == (Flag.ICC_CONVERTED,)
    wanted = _p3_as_srgb(pixels / 257) * 257  # type: ignore[arg-type]
    # Profiles hold matrices and curves in 16-bit fixed point.
    assert np.abs(converted - wanted).max() <= 6


def _ramp() -> NDArray[np.uint16]:
    return np.arange(0, 65536, 16, dtype=np.uint16).reshape(64, 64)


def test_a_grey_profile_keeps_levels_apart_that_8_bits_would_merge() -> None:
    profile = bytes(imagecodecs.cms_profile("gray", whitepoint=[0.3127, 0.329, 1.0], gamma=1.8))
    converted, flags = to_srgb16(_ramp(), "grey", profile)
    assert flags == (Flag.ICC_CONVERTED,)
    wanted = _curve((_ramp() / 65535) ** 1.8) * 65535
    bright = _ramp() > 6000
    assert np.abs(converted[..., 0][bright] - wanted[bright]).max() <= 40
    assert len(np.unique(converted[..., 0])) > 4000


def test_a_profile_that_is_srgb_changes_nothing_and_a_broken_one_is_flagged() -> None:
    srgb = bytes(imagecodecs.cms_profile("srgb"))
    assert to_srgb16(DEEP, "rgb", srgb)[0] is DEEP
    pixels, flags = to_srgb16(DEEP, "rgb", b"nonsense")
    assert pixels is DEEP
    assert flags == (Flag.ICC_UNREADABLE,)
    assert to_srgb16(DEEP, "rgb", b"x" * 16 + b"GRAY" + b"x" * 16 + b"acsp" + b"x" * 200)[1] == (Flag.ICC_MISMATCH,)


def test_ink_without_a_profile_is_converted_by_the_plain_formula() -> None:
    ink = CHANCE.integers(0, 65536, (6, 7, 4), dtype=np.uint16)
    found, _ = to_srgb16(ink, "cmyk", None)
    expected = (65535.0 - ink[..., :3]) * (65535.0 - ink[..., 3:]) / 65535
    assert np.abs(found - expected).max() <= 0.5001


def test_linear_light_helper_is_the_inverse_of_the_curve() -> None:
    values = np.linspace(0, 1, 100)
    np.testing.assert_allclose(_curve(_linear(values)), values, atol=1e-4)
