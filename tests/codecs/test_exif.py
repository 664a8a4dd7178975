from __future__ import annotations

import random

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs.exif import exif_orientation
from shardforge.geometry.orientation import apply_orientation
from shardforge.shards.catalogue import Flag
from tests.codecs.image_files import (
    exif,
    jpeg_segment,
    png_of,
    read,
    rgb_scene,
    tiff_of,
    webp,
    with_segments,
)

# Which edges of the scene the first stored row and the first stored column are (EXIF 2.32, tag 0x0112).
EDGES = {
    1: ("top", "left"),
    2: ("top", "right"),
    3: ("bottom", "right"),
    4: ("bottom", "left"),
    5: ("left", "top"),
    6: ("right", "top"),
    7: ("right", "bottom"),
    8: ("left", "bottom"),
}


def _stored(scene: NDArray[np.uint8], value: int) -> NDArray[np.uint8]:
    """The array that a file with this orientation stores, pixel by pixel."""
    height, width = scene.shape[:2]
    rows, columns = (height, width) if value <= 4 else (width, height)
    stored = np.empty((rows, columns, 3), np.uint8)
    for row, column in np.ndindex(rows, columns):
        place = {}
        for edge, distance in zip(EDGES[value], (row, column), strict=True):
            axis, length = ("y", height) if edge in ("top", "bottom") else ("x", width)
            place[axis] = distance if edge in ("top", "left") else length - 1 - distance
        stored[row, column] = scene[place["y"], place["x"]]
    return stored


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [3, 4])
@pytest.mark.parametrize("value", range(1, 9))
def test_orientation_is_read_in_both_byte_orders_and_integer_types(value: int, order: str, kind: int) -> None:
    assert exif_orientation(exif(value, order, kind)) == (value, True)
    assert exif_orientation(b"Exif\0\0" + exif(value, order, kind)) == (value, True)


@pytest.mark.parametrize("value", [9, 255, 65535])
def test_impossible_orientation_is_unreadable(value: int) -> None:
    assert exif_orientation(exif(value)) == (None, False)


def test_zero_declares_nothing() -> None:
    assert exif_orientation(exif(0)) == (None, True)


def test_block_without_the_tag_declares_nothing() -> None:
    assert exif_orientation(exif(6).replace(b"\x12\x01", b"\x13\x01")) == (None, True)


def test_wrong_type_is_unreadable() -> None:
    assert exif_orientation(exif(6, kind=3).replace(b"\x12\x01\x03\0", b"\x12\x01\x05\0")) == (None, False)


def test_damaged_block_never_raises() -> None:
    rng = random.Random(1)
    block = b"Exif\0\0" + exif(6)
    for length in range(len(block)):
        exif_orientation(block[:length])
    for _ in range(3000):
        damaged = bytearray(block)
        for _ in range(rng.randrange(1, 5)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        value, _ = exif_orientation(bytes(damaged))
        assert value is None or 1 <= value <= 8


@pytest.mark.parametrize("value", range(1, 9))
def test_every_container_is_turned_by_its_orientation(value: int) -> None:
    scene = rgb_scene()
    stored = _stored(scene, value)
    lossless = bytes(imagecodecs.webp_encode(stored, lossless=True))
    height, width = stored.shape[:2]
    canvas = b"\x08\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    files = {
        "png": png_of(stored, [(b"eXIf", exif(value))]),
        "tiff": tiff_of(stored, 2, t274=(3, [value])),
        "webp": webp((b"VP8X", canvas), (b"VP8L", lossless[20:]), (b"EXIF", exif(value))),
    }
    for name, data in files.items():
        picture = read(data)
        assert picture.format == name
        assert np.array_equal(picture.pixels, scene), name
        assert picture.orientation == value
        assert (Flag.ORIENTED in picture.flags) == (value != 1)


@pytest.mark.parametrize("value", range(1, 9))
def test_jpeg_is_turned_by_its_orientation(value: int) -> None:
    stored = _stored(rgb_scene(48, 32), value)
    plain = simplejpeg.encode_jpeg(stored, 95, colorsubsampling="444")
    turned = read(with_segments(plain, jpeg_segment(0xE1, b"Exif\0\0" + exif(value))))
    assert np.array_equal(turned.pixels, apply_orientation(read(plain).pixels, value))
    assert (turned.source_width, turned.source_height) == (48, 32)


def test_unreadable_exif_is_flagged_and_the_picture_kept() -> None:
    plain = simplejpeg.encode_jpeg(rgb_scene(16, 16), 90)
    picture = read(with_segments(plain, jpeg_segment(0xE1, b"Exif\0\0II*\0\xff\xff\xff\xff")))
    assert picture.orientation == 1
    assert picture.flags == (Flag.EXIF_UNREADABLE,)
