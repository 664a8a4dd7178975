from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shardforge.codecs.encode import encode
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.codecs.image_files import read, rgb_scene

SCENE = rgb_scene(45, 31)
SMOOTH = np.ascontiguousarray(np.stack([SCENE[:, :, 0], SCENE[:, :, 1], SCENE[:, :, 0] // 2], -1))


def _encode(pixels: Any, format: Any, quality: int = 95, subsampling: Any = "420") -> bytes:
    return encode(pixels, format=format, quality=quality, subsampling=subsampling)


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "npy"])
@pytest.mark.parametrize("channels", [1, 3])
def test_same_pixels_give_the_same_bytes_also_from_a_view(format: str, channels: int) -> None:
    pixels = SMOOTH[:, :, :channels]
    flipped_twice = np.ascontiguousarray(pixels[:, ::-1])[:, ::-1]
    assert _encode(pixels, format) == _encode(flipped_twice, format)


@pytest.mark.parametrize("channels", [1, 3])
def test_png_and_npy_are_exact(channels: int) -> None:
    pixels = SCENE[:, :, :channels]
    assert np.array_equal(read(_encode(pixels, "png"), channels).pixels, pixels)
    loaded = np.load(io.BytesIO(_encode(pixels, "npy")), allow_pickle=False)
    assert loaded.dtype == np.uint8
    assert np.array_equal(loaded, pixels)


@pytest.mark.parametrize("format", ["jpg", "webp"])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossy_formats_stay_close(format: str, channels: int) -> None:
    pixels = SMOOTH[:, :, :channels]
    decoded = read(_encode(pixels, format), channels).pixels
    assert decoded.shape == pixels.shape
    assert np.abs(decoded.astype(int) - pixels).mean() < 3


def test_quality_and_subsampling_reach_the_file() -> None:
    assert len(_encode(SCENE, "jpg", 50)) < len(_encode(SCENE, "jpg", 95)) < len(_encode(SCENE, "jpg", 95, "444"))
    assert len(_encode(SCENE, "webp", 50)) < len(_encode(SCENE, "webp", 95))
    for subsampling, factor in (("420", 2), ("444", 1)):
        picture = Image.open(io.BytesIO(_encode(SCENE, "jpg", 95, subsampling)))
        assert picture.layer[0][1:3] == (factor, factor)


def test_grey_jpeg_has_one_component() -> None:
    assert Image.open(io.BytesIO(_encode(SCENE[:, :, :1], "jpg"))).mode == "L"


def test_jpeg_has_no_metadata() -> None:
    picture = Image.open(io.BytesIO(_encode(SCENE, "jpg")))
    assert {segment for segment, _ in picture.applist} == {"APP0"}


@pytest.mark.parametrize(("format", "side"), [("jpg", 65501), ("webp", 16384)])
def test_side_that_the_format_cannot_hold_is_refused(format: str, side: int) -> None:
    with pytest.raises(SampleError) as caught:
        _encode(np.zeros((1, side, 3), np.uint8), format)
    assert caught.value.reason is Reason.OVER_BUDGET
