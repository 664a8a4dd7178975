"""Payloads → values, held against Pillow, NumPy and imagecodecs."""

from __future__ import annotations

import io
import pickle
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from shardforge.shards.manifest import FieldInfo, FieldKind
from shardforge.stream.decode import Undecodable, decode
from tests.datasets import encode, picture


def value(payload: bytes, field: str, kind: FieldKind = "image", channels: int = 3, **more: bool) -> object:
    return decode(memoryview(payload), field, FieldInfo(kind), channels, **more)


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def header_of_png(width: int, height: int) -> bytes:
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", ["png", "webp", "npy"])
def test_lossless_images_come_out_as_they_went_in(form: str, channels: int) -> None:
    image = picture(1, (37, 23), channels)
    assert np.array_equal(value(encode(image, form), form, channels=channels), image)


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_jpegs_have_the_pixels_that_pillow_gives(subsampling: int) -> None:
    payload = saved(Image.fromarray(picture(2, (61, 47))), "JPEG", quality=80, subsampling=subsampling)
    assert np.array_equal(value(payload, "jpg"), np.asarray(Image.open(io.BytesIO(payload))))


@pytest.mark.parametrize("form", ["jpg", "png", "webp"])
def test_colours_stand_in_rgb_order(form: str) -> None:
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 255
    found = value(encode(red, form), form)
    assert found[..., 0].min() > 250
    assert found[..., 1:].max() < 5


def test_one_channel_is_asked_of_a_grey_jpeg() -> None:
    payload = saved(Image.fromarray(picture(3, (20, 30), 1)[..., 0]), "JPEG", quality=95)
    found = value(payload, "jpg", channels=1)
    assert found.shape == (20, 30, 1)
    assert np.array_equal(found[..., 0], np.asarray(Image.open(io.BytesIO(payload))))


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_an_orientation_tag_turns_nothing(form: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    payload = saved(Image.fromarray(picture(4, (10, 20))), form, exif=exif)
    field = {"JPEG": "jpg", "PNG": "png"}[form]
    assert value(payload, field).shape == (10, 20, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_masks_keep_their_numbers(dtype: type) -> None:
    mask = (np.arange(35).reshape(5, 7) * (7 if dtype is np.uint8 else 1800)).astype(dtype)
    found = value(encode(mask, "png"), "mask.png", "mask")
    assert found.dtype == dtype
    assert np.array_equal(found, mask)


def test_a_palette_mask_is_refused_instead_of_read_as_colours() -> None:
    palette = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).convert("P")
    with pytest.raises(Undecodable, match="grey PNG"):
        value(saved(palette, "PNG"), "mask.png", "mask")


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.array(3), np.zeros((2, 0), np.int16)])
def test_arrays_come_out_as_they_went_in(array: np.ndarray) -> None:
    found = value(encode(array, "npy"), "npy", "array")
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert found.flags.writeable


def test_arrays_may_be_big_endian_or_in_fortran_order() -> None:
    array = np.asfortranarray(np.arange(12, dtype=">i4").reshape(3, 4))
    found = value(encode(array, "npy"), "npy", "array")
    assert found.dtype == np.dtype("int32")
    assert found.flags.c_contiguous
    assert np.array_equal(found, array)


def test_a_flat_array_is_an_image_of_one_channel() -> None:
    assert value(encode(np.zeros((4, 5), np.uint16), "npy"), "npy", channels=1).shape == (4, 5, 1)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 4), (2, 4, 5, 3)])
def test_an_array_of_the_wrong_shape_is_no_image(shape: tuple[int, ...]) -> None:
    with pytest.raises(Undecodable, match="where"):
        value(encode(np.zeros(shape, np.uint8), "npy"), "npy", channels=3)


class Boom:
    def __reduce__(self) -> tuple:
        return exit, (7,)


def npy(header: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + version + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text + body


@pytest.mark.parametrize(
    "payload",
    [
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", pickle.dumps(Boom())),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,), }\n", b"1234"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-4,), }\n", b"1234"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", b"1234"),
        npy("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }\n", bytes(16)),
        npy("{'descr': '|V8', 'fortran_order': False, 'shape': (1,), }\n", bytes(8)),
        npy("__import__('os').abort()\n"),
        npy("(" * 9000 + ")" * 900),
        npy(" " * 40_000, version=b"\x02\x00"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n", b"1234", version=b"\x03\x00"),
        pickle.dumps([1, 2]),
        b"",
        b"\x93NUMPY",
    ],
)
def test_hostile_arrays_are_refused(payload: bytes) -> None:
    with pytest.raises(Undecodable):
        value(payload, "npy", "array")


@pytest.mark.parametrize("form", ["jpg", "png", "webp", "npy"])
def test_damaged_images_are_refused(form: str) -> None:
    payload = encode(picture(5, (64, 64)), form)
    for bad in (b"", b"\0" * 100, payload[:20], b"\0" * 30 + payload[30:], payload[: len(payload) // 2]):
        with pytest.raises(Undecodable):
            value(bad, form)


def test_a_payload_of_another_format_is_refused() -> None:
    for form, other in (("jpg", "png"), ("png", "jpg"), ("webp", "png"), ("npy", "png")):
        with pytest.raises(Undecodable):
            value(encode(picture(6), other), form)


def test_a_truncated_jpeg_can_be_tolerated() -> None:
    payload = encode(picture(7, (64, 64)), "jpg")[:-100]
    with pytest.raises(Undecodable) as error:
        value(payload, "jpg")
    assert error.value.tolerable
    assert value(payload, "jpg", strict=False).shape == (64, 64, 3)


def test_gigantic_pictures_are_refused_from_their_header() -> None:
    with pytest.raises(Undecodable, match="pixels are more"):
        value(header_of_png(60_000, 60_000), "png")
    jpeg = bytearray(encode(picture(8), "jpg"))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 65_000, 65_000)
    with pytest.raises(Undecodable, match="pixels are more"):
        value(bytes(jpeg), "jpg")


def test_text_json_and_class_members() -> None:
    assert value("Größe".encode(), "txt", "text") == "Größe"
    assert value(b'{"a": [1, null]}', "json", "json") == {"a": [1, None]}
    assert value(b"17", "cls", "class") == 17


@pytest.mark.parametrize(
    ("payload", "field", "kind"),
    [
        (b"\xff\xfe", "txt", "text"),
        (b"{", "json", "json"),
        (b"[" * 100_000, "json", "json"),
        (b"\xff", "json", "json"),
        (b"seven", "cls", "class"),
        (b"", "cls", "class"),
        (b"9" * 5000, "cls", "class"),
    ],
)
def test_damaged_texts_are_refused(payload: bytes, field: str, kind: FieldKind) -> None:
    with pytest.raises(Undecodable, match="no valid"):
        value(payload, field, kind)


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_flipped_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(["jpg", "png", "webp", "npy"]))
    payload = bytearray(encode(picture(9, (24, 24)), form))
    for place, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(payload) - 1), st.integers(0, 255)), max_size=5)
    ):
        payload[place] = byte
    try:
        found = value(bytes(payload), form)
    except Undecodable:
        return
    assert found.ndim == 3
    assert found.shape[2] == 3


def test_a_volume_has_three_axes_of_any_length() -> None:
    volume = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    assert np.array_equal(value(encode(volume, "npy"), "npy", "volume", channels=1), volume[..., None])
    with pytest.raises(Undecodable, match=r"\[Z, Y, X\]"):
        value(encode(volume[0], "npy"), "npy", "volume", channels=1)
