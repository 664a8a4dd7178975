from __future__ import annotations

import io

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from shardforge.codecs.decode import decode_mask
from shardforge.codecs.encode import encode_mask
from shardforge.errors import SampleError
from shardforge.geometry.orientation import apply_orientation
from shardforge.shards.catalogue import Reason
from tests.codecs.image_files import LIMITS, exif, png, png_of, rgb_scene, tiff_of

LABELS = np.array([[0, 1, 2, 255], [7, 7, 0, 200], [3, 2, 1, 0]], np.uint8)


def _mask(data: bytes, **options: object) -> NDArray[np.unsignedinteger]:
    return decode_mask(data, limits=LIMITS, **options).labels  # type: ignore[arg-type]


def _saved(kind: str) -> bytes:
    picture = Image.fromarray(LABELS)
    # A palette in which neighbouring indices, and most others, have the same colour.
    picture = picture.convert("L")
    paletted = Image.frombytes("P", picture.size, picture.tobytes())
    paletted.putpalette([i // 4 * 4 for i in range(256) for _ in range(3)])
    buffer = io.BytesIO()
    paletted.save(buffer, kind, **({"optimize": False} if kind == "GIF" else {}))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF"])
def test_palette_index_is_the_label_whatever_the_colours(kind: str) -> None:
    labels = _mask(_saved(kind))
    assert labels.dtype == np.uint8
    assert np.array_equal(labels, LABELS)


def test_grey_levels_are_labels_in_every_exact_format() -> None:
    pnm = b"P5 4 3 255\n" + LABELS.tobytes()
    for data in (png_of(LABELS), tiff_of(LABELS, 1), tiff_of(LABELS, 0), pnm):
        assert np.array_equal(_mask(data), LABELS)


def test_maxval_does_not_scale_labels() -> None:
    assert _mask(b"P5 3 1 10\n\x00\x05\x0a").tolist() == [[0, 5, 10]]


@pytest.mark.parametrize("colour", [0, 3])
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_labels_of_few_bits_are_stored_values(depth: int, colour: int) -> None:
    values = np.arange(16 * 3).reshape(3, 16) % (1 << depth)
    bits = (values[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
    rows = [row.tobytes() for row in np.packbits(bits.reshape(3, -1).astype(np.uint8), axis=1)]
    before = [(b"PLTE", bytes(range(3 << depth)))] if colour == 3 else []
    assert np.array_equal(_mask(png(rows, 16, depth, colour, before)), values)


def test_labels_of_16_bits_are_kept() -> None:
    values = np.array([[0, 255, 256, 65535]], np.uint16)
    for data in (png_of(values), tiff_of(values, 1), tiff_of(values.astype(np.int32), 1)):
        labels = _mask(data)
        assert labels.dtype == np.uint16
        assert np.array_equal(labels, values)


def test_profile_and_transparency_do_not_touch_labels() -> None:
    before = [(b"PLTE", bytes(768)), (b"tRNS", bytes(256))]
    data = png([row.tobytes() for row in LABELS], 4, 8, 3, [(b"gAMA", b"\0\0\xb1\x8f"), *before])
    assert np.array_equal(_mask(data), LABELS)


def test_equal_channels_are_one_and_colours_are_refused() -> None:
    assert np.array_equal(_mask(png_of(np.repeat(LABELS[:, :, None], 3, axis=2))), LABELS)
    for data in (png_of(rgb_scene()), png_of(np.dstack([LABELS, LABELS]))):
        with pytest.raises(SampleError) as caught:
            _mask(data)
        assert caught.value.reason is Reason.UNSUPPORTED


def test_lossy_formats_and_labels_out_of_range_are_refused() -> None:
    files = [
        simplejpeg.encode_jpeg(rgb_scene(16, 16), 100),
        bytes(imagecodecs.webp_encode(rgb_scene(16, 16), level=90)),
        tiff_of(np.array([[-1, 5]], np.int16), 1),
        tiff_of(np.array([[0, 70000]], np.uint32), 1),
        tiff_of(np.array([[0, 1.5]], np.float32), 1),
    ]
    for data in files:
        with pytest.raises(SampleError) as caught:
            _mask(data)
        assert caught.value.reason is Reason.UNSUPPORTED


@pytest.mark.parametrize("orientation", range(1, 9))
def test_mask_without_a_word_of_its_own_is_turned_as_told(orientation: int) -> None:
    wanted = apply_orientation(LABELS, orientation)
    assert np.array_equal(_mask(png_of(LABELS), orientation=orientation), wanted)
    assert decode_mask(png_of(LABELS), limits=LIMITS, orientation=orientation).oriented == (orientation > 1)


def test_own_orientation_of_a_mask_counts_alone() -> None:
    for own in (1, 6, 8):
        data = png_of(LABELS, [(b"eXIf", exif(own))])
        assert np.array_equal(_mask(data, orientation=3), apply_orientation(LABELS, own))
        assert decode_mask(data, limits=LIMITS, orientation=3).oriented == (own > 1)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_encoded_labels_come_back(dtype: type) -> None:
    top = 255 if dtype is np.uint8 else 65535
    labels = np.random.default_rng(5).integers(0, top, (19, 33), endpoint=True).astype(dtype)
    data = encode_mask(labels)
    assert np.array_equal(_mask(data), labels)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), labels)
    assert encode_mask(labels) == data


@pytest.mark.parametrize("value", [-1, 65536])
def test_labels_that_no_png_holds_are_refused(value: int) -> None:
    with pytest.raises(SampleError):
        encode_mask(np.array([[value]], np.int32))
