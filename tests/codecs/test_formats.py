"""GIF, WebP, BMP and Netpbm, made by hand or by another encoder."""

from __future__ import annotations

import io

import imagecodecs
import numpy as np
import pytest
from PIL import Image

from shardforge.codecs.decode import DECODERS
from shardforge.codecs.isobmff import clean_aperture
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import read, rgb_scene, webp

SCENE = rgb_scene(6, 4)


def _reason(data: bytes) -> Reason:
    with pytest.raises(SampleError) as caught:
        read(data)
    return caught.value.reason


def _gif(canvas: tuple[int, int], frame: tuple[int, int, int, int]) -> bytes:
    """A GIF of one green frame in a palette of red, green, blue, black."""
    left, top, width, height = frame
    picture = Image.new("P", (width, height), 1)
    picture.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0])
    buffer = io.BytesIO()
    picture.save(buffer, "GIF", optimize=False)
    data = bytearray(buffer.getvalue())
    palette = 3 << ((data[10] & 7) + 1)
    at = data.index(b",", 13 + palette)
    data[6:10] = np.array(canvas, "<u2").tobytes()
    data[at + 1 : at + 5] = np.array([left, top], "<u2").tobytes()
    return bytes(data)


def test_gif_frame_lies_on_its_canvas_and_the_rest_is_background() -> None:
    pixels = read(_gif((10, 8), (2, 3, 4, 3)), background=(9, 8, 7)).pixels
    wanted = np.full((8, 10, 3), (9, 8, 7), np.uint8)
    wanted[3:6, 2:6] = (0, 255, 0)
    assert np.array_equal(pixels, wanted)


def test_gif_frame_outside_the_canvas_is_refused() -> None:
    assert _reason(_gif((10, 8), (8, 3, 4, 3))) is Reason.BAD_HEADER
    assert _reason(_gif((10, 8), (60000, 60000, 4, 3))) is Reason.OVER_BUDGET


def test_gif_cut_inside_its_first_frame_is_truncated() -> None:
    data = _gif((4, 3), (0, 0, 4, 3))
    assert _reason(data[:-4]) is Reason.TRUNCATED
    assert _reason(data[:12]) is Reason.TRUNCATED
    assert read(data[:-1]).pixels.shape == (3, 4, 3)


def _webp_canvas(width: int, height: int, flags: int) -> tuple[bytes, bytes]:
    return b"VP8X", bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def test_webp_animation_gives_its_first_frame_on_the_canvas() -> None:
    inner = bytes(imagecodecs.webp_encode(SCENE, lossless=True))[12:]
    place = b"".join(value.to_bytes(3, "little") for value in (1, 2, 5, 3, 100))  # x/2, y/2, w-1, h-1, milliseconds
    frame = (b"ANMF", place + b"\0" + inner)
    data = webp(_webp_canvas(20, 16, 2), (b"ANIM", b"\0\0\xff\xff\0\0"), frame, frame)
    picture = read(data, background=(9, 8, 7))
    wanted = np.full((16, 20, 3), (9, 8, 7), np.uint8)
    wanted[4:8, 2:8] = SCENE
    assert np.array_equal(picture.pixels, wanted)
    assert picture.frames == 2
    assert Flag.FIRST_FRAME in picture.flags


@pytest.mark.parametrize("lossless", [False, True])
def test_webp_cut_off_is_truncated(lossless: bool) -> None:
    data = bytes(imagecodecs.webp_encode(rgb_scene(64, 64), level=90, lossless=lossless))
    for share in (0.2, 0.5, 0.9):
        assert _reason(data[: int(len(data) * share)]) is Reason.TRUNCATED


def test_webp_of_two_sizes_is_corrupt() -> None:
    inner = bytes(imagecodecs.webp_encode(SCENE, lossless=True))[20:]
    assert _reason(webp(_webp_canvas(5, 4, 0), (b"VP8L", inner))) is Reason.CORRUPT


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_bmp_equals_what_was_saved(mode: str) -> None:
    picture = Image.fromarray(SCENE).convert(mode)
    buffer = io.BytesIO()
    picture.save(buffer, "BMP")
    assert np.array_equal(read(buffer.getvalue()).pixels, np.asarray(picture.convert("RGB")))
    assert _reason(buffer.getvalue()[:-20]) is Reason.TRUNCATED


def test_bmp_bomb_is_refused_from_its_header() -> None:
    header = b"BM" + b"\0" * 8 + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    size = (2_400_000).to_bytes(4, "little") * 2
    assert _reason(header + size + b"\1\0\x18\0" + b"\0" * 24) is Reason.OVER_BUDGET


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"P1 3 2\n1 0 1\n0 1 0\n", [[0, 255, 0], [255, 0, 255]]),
        (b"P1\n# comment\n3 2\n101010", [[0, 255, 0], [255, 0, 255]]),
        (b"P4 3 2\n\xa0\x40", [[0, 255, 0], [255, 0, 255]]),
        (b"P2 3 1 10 0 5 10\n", [[0, 128, 255]]),
        (b"P2 3 1 # white\n 65535 0 32768 65535\n", [[0, 128, 255]]),
        (b"P5 3 1 10\n\x00\x05\x0a", [[0, 128, 255]]),
        (b"P5 2 1 65535\n\x00\x00\xff\xff", [[0, 255]]),
        (b"P5 2 1 1023\n\x00\x00\x03\xff", [[0, 255]]),
    ],
)
def test_netpbm_grey_is_scaled_by_its_maxval(data: bytes, wanted: list[list[int]]) -> None:
    assert read(data, 1).pixels[:, :, 0].tolist() == wanted


def test_netpbm_colours() -> None:
    assert read(b"P6 2 1 255\n" + bytes([1, 2, 3, 4, 5, 6])).pixels.tolist() == [[[1, 2, 3], [4, 5, 6]]]
    assert read(b"P3 2 1 255\n1 2 3 4 5 6").pixels.tolist() == [[[1, 2, 3], [4, 5, 6]]]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"P6 2 1 255\n\1\2\3", Reason.TRUNCATED),
        (b"P3 2 1 255\n1 2 3", Reason.TRUNCATED),
        (b"P2 2 1 255\n1 x", Reason.CORRUPT),
        (b"P5 2 1 10\n\1\x0b", Reason.CORRUPT),
        (b"P5 0 1 10\n\1\x0b", Reason.BAD_HEADER),
        (b"P5 2 1 70000\n\1\x0b", Reason.BAD_HEADER),
        (b"P5 99999 99999 255\n", Reason.OVER_BUDGET),
        (b"P7\nWIDTH 2\n", Reason.UNSUPPORTED),
    ],
)
def test_netpbm_damage_has_its_reason(data: bytes, reason: Reason) -> None:
    assert _reason(data) is reason


def test_every_format_has_a_decoder_and_what_has_none_is_unsupported() -> None:
    assert {"jpeg", "png", "webp", "tiff", "gif", "bmp", "pnm", "avif", "heif"} <= DECODERS.keys()
    assert _reason(b"v/1\1" + b"\0" * 600) is Reason.UNSUPPORTED
    assert _reason(b"\0" * 128 + b"DICM" + b"\0" * 600) is Reason.UNSUPPORTED
    assert _reason(b"") is Reason.EMPTY
    assert _reason(b"hello, this is text") is Reason.NOT_AN_IMAGE


def test_gif_without_any_palette_is_a_ramp_of_greys() -> None:
    data = _gif((4, 3), (0, 0, 4, 3))
    palette = 3 << ((data[10] & 7) + 1)
    bare = data[:10] + bytes([data[10] & 0x7F]) + data[11:13] + data[13 + palette :]
    assert (read(bare).pixels == 1).all()


def _aperture(width: int, height: int, right: int, down: int) -> bytes:
    """A clap box's content with the centre moved by halves of a pixel."""
    return b"".join(n.to_bytes(4, "big", signed=True) for n in (width, 1, height, 1, right, 2, down, 2))


def test_clean_aperture_crops_around_the_moved_centre() -> None:
    assert clean_aperture(_aperture(29, 100, -35, 0), 64, 100) == (slice(0, 100), slice(0, 29))
    assert clean_aperture(_aperture(10, 20, 0, 0), 30, 30) == (slice(5, 25), slice(10, 20))
    assert clean_aperture(_aperture(10, 20, 20, 10), 30, 30) == (slice(10, 30), slice(20, 30))
    for body in (_aperture(40, 20, 0, 0), _aperture(10, 20, 22, 0), _aperture(0, 20, 0, 0), bytes(32)):
        with pytest.raises(SampleError) as caught:
            clean_aperture(body, 30, 30)
        assert caught.value.reason is Reason.BAD_HEADER


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA"])
def test_a_bmp_without_the_padding_at_its_end_is_suspect(mode: str) -> None:
    buffer = io.BytesIO()
    # 7 pixels: rows of 1, 7 and 21 bytes are padded to 4, 8 and 24; those of 28 are not.
    Image.fromarray(rgb_scene(7, 5)).convert(mode).save(buffer, "BMP")
    data = buffer.getvalue()
    whole = read(data)
    assert Flag.SUSPECT not in whole.flags
    for missing in range(1, {"1": 4, "L": 2, "RGB": 4, "RGBA": 1}[mode]):
        picture = read(data[:-missing])
        assert Flag.SUSPECT in picture.flags
        assert np.array_equal(picture.pixels, whole.pixels)
    assert _reason(data[:-8]) is Reason.TRUNCATED


def test_a_gif_that_does_not_come_to_its_trailer_is_suspect() -> None:
    buffer = io.BytesIO()
    frames = [Image.fromarray(rgb_scene(16, 12)).quantize(8), Image.new("P", (16, 12))]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    data = buffer.getvalue()
    assert data[-1:] == b";"
    assert Flag.SUSPECT not in read(data).flags
    assert Flag.SUSPECT not in read(data + b"behind").flags
    for cut in (data[:-1], data[:-5]):
        picture = read(cut)
        assert Flag.SUSPECT in picture.flags
        assert np.array_equal(picture.pixels, read(data).pixels)
