"""Our PNG files hold exactly the pixels given, as other libraries read them, whichever filter was chosen."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import cv2
import imagecodecs
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_images

from shardforge.codecs.png_encode import encode_png

DRAW = np.random.default_rng(3)
SHAPES = [(1, 1), (1, 7), (7, 1), (3, 2), (47, 48), (600, 5)]
"""Fewer rows than strips, and more than are filtered at a time."""


def kinds(height: int, width: int, channels: int, dtype: Any) -> dict[str, NDArray[Any]]:
    """Pictures that ask for different filters."""
    high = np.iinfo(dtype).max
    shape = (height, width) if channels == 1 else (height, width, channels)
    across = np.linspace(0, 1, width)[:, None] if channels > 1 else np.linspace(0, 1, width)
    ramp = np.broadcast_to(across, shape) * high
    walk = (np.cumsum(DRAW.normal(0, high / 200, shape), 0) + np.cumsum(DRAW.normal(0, high / 200, shape), 1)) % high
    return {
        "noise": DRAW.integers(0, high, shape, dtype=dtype, endpoint=True),
        "flat": np.full(shape, high // 3, dtype),
        "ramp": ramp.astype(dtype),
        "smooth": walk.astype(dtype),
    }


def first_filter(data: bytes) -> int:
    place, content = 8, b""
    while place < len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        content += data[place + 8 : place + 8 + size] if kind == b"IDAT" else b""
        place += size + 12
    return zlib.decompress(content)[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_other_libraries_read_the_same_pixels(height: int, width: int, channels: int, dtype: Any) -> None:
    for name, pixels in kinds(height, width, channels, dtype).items():
        data = encode_png(pixels)
        read = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        swapped = read[:, :, ::-1] if channels == 3 else read
        assert swapped.dtype == dtype
        assert np.array_equal(swapped, pixels), name
        assert np.array_equal(imagecodecs.png_decode(data), pixels), name
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            assert set(picture.info) == set()
            assert picture.size == (width, height)


def test_the_filter_follows_the_picture() -> None:
    chosen = {first_filter(encode_png(pixels)) for pixels in kinds(200, 200, 1, np.uint8).values()}
    chosen.add(first_filter(encode_png((kinds(200, 200, 3, np.uint8)["noise"] > 128).astype(np.uint8))))
    assert chosen == {0, 1, 3}


def test_photographs_are_about_as_small_as_with_libpng() -> None:
    for photograph in load_sample_images().images:
        pixels = cv2.resize(np.asarray(photograph), (384, 256), interpolation=cv2.INTER_AREA)
        assert len(encode_png(pixels)) < 1.04 * len(imagecodecs.png_encode(pixels, level=6))


@pytest.mark.parametrize("pixels", [np.zeros((2, 2), np.int16), np.zeros((2, 2, 4), np.uint8), np.zeros(2, np.uint8)])
def test_what_png_is_not_made_of_here_is_refused(pixels: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match="no PNG of"):
        encode_png(pixels)
