from __future__ import annotations

import zlib

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs.colour import composite, luma, to_srgb, to_uint8
from shardforge.codecs.samples import Samples
from shardforge.shards.catalogue import Flag
from tests.codecs.image_files import jpeg_segment, png_of, read, rgb_scene, tiff_of, with_segments

SCENE = rgb_scene(24, 16)
# ITU-R BT.709 / sRGB primaries to XYZ (D65), IEC 61966-2-1.
SRGB_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# Display P3 primaries (SMPTE EG 432-1) with the same white.
P3_TO_XYZ = np.array([[0.48657, 0.26567, 0.19822], [0.22897, 0.69174, 0.07929], [0.0, 0.04511, 1.04394]])


def _linear(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def _curve(values: NDArray[np.float64]) -> NDArray[np.float64]:
    values = values.clip(0, 1)
    return np.where(values <= 0.0031308, values * 12.92, 1.055 * values ** (1 / 2.4) - 0.055)


def _p3_as_srgb(pixels: NDArray[np.uint8]) -> NDArray[np.float64]:
    light = _linear(pixels / 255.0) @ P3_TO_XYZ.T @ np.linalg.inv(SRGB_TO_XYZ).T
    return _curve(light) * 255


def _profile(name: str, **options: object) -> bytes:
    return bytes(imagecodecs.cms_profile(name, **options))


def _p3_profile() -> bytes:
    return _profile(
        "rgb",
        whitepoint=[0.3127, 0.3290, 1.0],
        primaries=[0.680, 0.320, 1.0, 0.265, 0.690, 1.0, 0.150, 0.060, 1.0],
        transferfunction=_linear(np.linspace(0, 1, 4096)).astype(np.float32),
    )


def test_p3_is_converted_as_by_matrix_arithmetic() -> None:
    # Colours moderate enough to lie inside sRGB.
    pixels = np.random.default_rng(2).integers(90, 170, (20, 20, 3), np.uint8)
    converted, flags = to_srgb(pixels, "rgb", _p3_profile())
    assert flags == (Flag.ICC_CONVERTED,)
    assert np.abs(converted - _p3_as_srgb(pixels)).max() <= 1.5
    assert np.abs(converted.astype(int) - pixels).max() > 10


def test_profile_reaches_the_pixels_from_png_jpeg_and_tiff() -> None:
    profile = _p3_profile()
    wanted, _ = to_srgb(SCENE, "rgb", profile)
    packed = b"P3\0\0" + zlib.compress(profile)
    assert np.array_equal(read(png_of(SCENE, [(b"iCCP", packed)])).pixels, wanted)
    assert np.array_equal(read(tiff_of(SCENE, 2, t34675=(1, list(profile)))).pixels, wanted)
    plain = simplejpeg.encode_jpeg(SCENE, 95, colorsubsampling="444")
    half = len(profile) // 2
    parts = [b"ICC_PROFILE\0\x02\x02" + profile[half:], b"ICC_PROFILE\0\x01\x02" + profile[:half]]
    jpeg = read(with_segments(plain, *(jpeg_segment(0xE2, part) for part in parts)))
    assert np.array_equal(jpeg.pixels, to_srgb(read(plain).pixels, "rgb", profile)[0])
    assert jpeg.flags == (Flag.ICC_CONVERTED,)


def test_alpha_is_not_converted() -> None:
    profile = _p3_profile()
    rgba = np.concatenate([SCENE, np.full((16, 24, 1), 128, np.uint8)], 2)
    packed = b"P3\0\0" + zlib.compress(profile)
    pixels = read(png_of(rgba, [(b"iCCP", packed)]), background=(0, 0, 0)).pixels
    wanted = to_srgb(SCENE, "rgb", profile)[0] * (128 / 255)
    assert np.abs(pixels - wanted).max() <= 0.51


def test_srgb_profile_leaves_the_pixels_alone() -> None:
    converted, flags = to_srgb(SCENE, "rgb", _profile("srgb"))
    assert converted is SCENE
    assert flags == ()


def test_grey_profile_with_linear_light_is_converted() -> None:
    grey = np.arange(256, dtype=np.uint8)[None]
    converted, flags = to_srgb(grey, "grey", _profile("gray", gamma=1.0))
    assert flags == (Flag.ICC_CONVERTED,)
    assert np.abs(converted - (_curve(grey / 255.0) * 255)[:, :, None]).max() <= 2


@pytest.mark.parametrize("model", ["grey", "cmyk"])
def test_profile_for_other_pixels_is_ignored_and_flagged(model: str) -> None:
    shape = (2, 2) if model == "grey" else (2, 2, 4)
    pixels = np.full(shape, 100, np.uint8)
    converted, flags = to_srgb(pixels, model, _p3_profile())
    assert flags == (Flag.ICC_MISMATCH,)
    assert np.array_equal(converted, to_srgb(pixels, model, None)[0])


@pytest.mark.parametrize("damage", [b"", b"x" * 500, _profile("srgb")[:200], _profile("srgb")[:128] + b"\xff" * 400])
def test_unreadable_profile_counts_as_srgb_and_is_flagged(damage: bytes) -> None:
    converted, flags = to_srgb(SCENE, "rgb", damage)
    assert flags == (Flag.ICC_UNREADABLE,)
    assert converted is SCENE


def test_luma_is_bt601() -> None:
    rng = np.random.default_rng(3)
    pixels = rng.integers(0, 256, (50, 50, 3), np.uint8)
    exact = pixels @ np.array([0.299, 0.587, 0.114])
    assert np.abs(luma(pixels) - exact).max() <= 0.51
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)[None]
    assert np.array_equal(luma(levels)[0], np.arange(256))


def test_composite_is_exact_for_all_values_of_colour_and_alpha() -> None:
    colours, alpha = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    for background in (0, 77, 255):
        exact = (colours * (alpha / 255.0)) + background * (1 - alpha / 255.0)
        assert np.abs(composite(colours, alpha, (background,), premultiplied=False) - exact).max() <= 0.5 + 1e-9


@pytest.mark.parametrize("white", [1, 3, 15, 1023, 4095, 65535])
def test_depth_is_scaled_by_its_white(white: int) -> None:
    values = np.arange(white + 1, dtype=np.uint16)[None]
    scaled, flags = to_uint8(Samples(values, "grey", white))
    assert np.abs(scaled - values * 255.0 / white).max() <= 0.5
    assert (scaled[0, 0], scaled[0, -1]) == (0, 255)
    assert (Flag.DEPTH_REDUCED in flags) == (white > 255)
