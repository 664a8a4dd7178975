from __future__ import annotations

import io
import zlib

import numpy as np
import pytest
from PIL import Image

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import outcome, png, png_chunk, png_of, read, rgb_scene

SCENE = rgb_scene(37, 23)


def _reason(data: bytes) -> Reason:
    with pytest.raises(SampleError) as caught:
        read(data)
    return caught.value.reason


def _packed(values: np.ndarray, depth: int) -> list[bytes]:
    """Scanlines of samples of 1, 2 or 4 bits, leftmost in the high bits."""
    bits = (values[:, :, None] >> np.arange(depth - 1, -1, -1)) & 1
    return [row.tobytes() for row in np.packbits(bits.reshape(len(values), -1).astype(np.uint8), axis=1)]


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_few_bits_are_stretched_to_the_full_range(depth: int) -> None:
    values = np.arange(11 * 5).reshape(5, 11) % (1 << depth)
    pixels = read(png(_packed(values, depth), 11, depth, 0), 1).pixels
    assert np.array_equal(pixels[:, :, 0], values * 255 // ((1 << depth) - 1))


def test_16_bits_are_rounded_to_8() -> None:
    values = np.arange(0, 65536, 17, dtype=np.uint16)[None]
    picture = read(png_of(values), 1)
    assert np.array_equal(picture.pixels[0, :, 0], np.floor(values[0] * 255.0 / 65535 + 0.5))
    assert picture.flags == (Flag.DEPTH_REDUCED,)


def test_alpha_of_8_and_16_bits_is_laid_on_the_background() -> None:
    rng = np.random.default_rng(1)
    for dtype, white in ((np.uint8, 255), (np.uint16, 65535)):
        rgba = rng.integers(0, white, (9, 13, 4), dtype, endpoint=True)
        picture = read(png_of(rgba), 3, (10, 200, 30))
        alpha = rgba[:, :, 3:] / white
        wanted = rgba[:, :, :3] / white * 255 * alpha + np.array([10, 200, 30]) * (1 - alpha)
        assert np.abs(picture.pixels - wanted).max() <= 1.01
        assert Flag.ALPHA_COMPOSITED in picture.flags


def test_opaque_alpha_is_not_reported() -> None:
    rgba = np.concatenate([SCENE, np.full((23, 37, 1), 255, np.uint8)], 2)
    picture = read(png_of(rgba))
    assert np.array_equal(picture.pixels, SCENE)
    assert picture.flags == ()


def test_grey_with_alpha_for_one_channel_uses_the_luma_of_the_background() -> None:
    la = np.zeros((2, 2, 2), np.uint8)
    picture = read(png_of(la), 1, (255, 0, 0))
    assert (picture.pixels == 76).all()  # 0.299 · 255 = 76.2


@pytest.mark.parametrize(
    ("colour", "rows", "clear", "background", "wanted"),
    [
        (0, [b"\x05\x06"], b"\0\x05", (1, 2, 3), [[1, 2, 3], [6, 6, 6]]),
        (2, [b"\x05\x06\x07\x05\x06\x08"], b"\0\x05\0\x06\0\x07", (1, 2, 3), [[1, 2, 3], [5, 6, 8]]),
        (3, [b"\0\1"], b"\0", (1, 2, 3), [[1, 2, 3], [40, 50, 60]]),
        (3, [b"\0\1"], b"\xff\0", (1, 2, 3), [[10, 20, 30], [1, 2, 3]]),
    ],
)
def test_transparent_colour_shows_the_background(
    colour: int, rows: list[bytes], clear: bytes, background: tuple[int, int, int], wanted: list[list[int]]
) -> None:
    palette = [(b"PLTE", bytes([10, 20, 30, 40, 50, 60]))] if colour == 3 else []
    data = png(rows, 2, 8, colour, [*palette, (b"tRNS", clear)])
    assert read(data, 3, background).pixels.tolist() == [wanted]


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P", "1", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 5), (37, 23)])
def test_interlaced_equals_not_interlaced(mode: str, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    width, height = size
    channels, depth, colour = {
        "L": (1, 8, 0),
        "RGB": (3, 8, 2),
        "RGBA": (4, 8, 6),
        "LA": (2, 8, 4),
        "P": (1, 8, 3),
        "1": (1, 1, 0),
        "I;16": (1, 16, 0),
    }[mode]
    bytes_per_pixel = channels * max(1, depth // 8)
    values = rng.integers(0, 2 if depth == 1 else 256, (height, width, bytes_per_pixel), np.uint8)
    before = [(b"PLTE", rng.integers(0, 256, 768, np.uint8).tobytes())] if colour == 3 else []

    def lines(part: np.ndarray) -> list[bytes]:
        return _packed(part[:, :, 0], 1) if depth == 1 else [row.tobytes() for row in part]

    plain = png(lines(values), width, depth, colour, before)
    # Adam7 (PNG, 8.1): starting row and column, and steps, of the seven passes.
    passes = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
    rows = [
        line
        for y, x, down, right in passes
        if values[y::down, x::right].size
        for line in lines(values[y::down, x::right])
    ]
    packed = zlib.compress(b"".join(b"\0" + row for row in rows))
    header = plain[16:28] + b"\x01"
    parts = [(b"IHDR", header), *before, (b"IDAT", packed), (b"IEND", b"")]
    interlaced = plain[:8] + b"".join(png_chunk(kind, body) for kind, body in parts)
    assert np.array_equal(read(interlaced).pixels, read(plain).pixels)


def test_flipped_bit_in_the_pixels_is_corrupt_even_where_it_inflates() -> None:
    # Stored without compression, a flipped bit only changes a pixel and the checksums.
    header = png_of(SCENE)[:33]
    stored = zlib.compressobj(0)
    raw = stored.compress(b"".join(b"\0" + row.tobytes() for row in SCENE)) + stored.flush()
    good = header + png_chunk(b"IDAT", raw) + png_chunk(b"IEND", b"")
    assert np.array_equal(read(good).pixels, SCENE)
    for at in (60, 500, len(good) - 30):
        assert _reason(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :]) is Reason.CORRUPT


def test_cut_anywhere_it_is_truncated_or_complete_and_flagged() -> None:
    data = png_of(SCENE)
    for length in range(9, len(data) - 1, 3):
        picture = outcome(data[:length])
        if isinstance(picture, Reason):
            assert picture is Reason.TRUNCATED, length
        else:
            assert np.array_equal(picture.pixels, SCENE)
            assert picture.flags == (Flag.SUSPECT, Flag.PNG_MISSING_IEND)


def test_impossible_headers_are_refused() -> None:
    data = png_of(SCENE)

    def with_header(width: int, height: int, depth: int, colour: int) -> bytes:
        body = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, colour, 0, 0, 0])
        return data[:8] + png_chunk(b"IHDR", body) + data[33:]

    assert _reason(with_header(0, 5, 8, 2)) is Reason.BAD_HEADER
    assert _reason(with_header(5, 5, 3, 2)) is Reason.BAD_HEADER
    assert _reason(with_header(5, 5, 8, 5)) is Reason.BAD_HEADER
    assert _reason(with_header(100_000, 100_000, 8, 2)) is Reason.OVER_BUDGET


def test_broken_profile_is_flagged_and_an_endless_one_is_not_inflated() -> None:
    bomb = zlib.compress(b"\0" * (2**24 + 10), 9)
    for body in (b"x\0\0" + bomb, b"x\0\0not zlib", b"x\0\x07" + zlib.compress(b"profile"), b"", b"x"):
        picture = read(png_of(SCENE, [(b"iCCP", body)]))
        assert Flag.ICC_UNREADABLE in picture.flags
        assert np.array_equal(picture.pixels, SCENE)


@pytest.mark.parametrize("kind", [b"zTXt", b"iTXt"])
def test_text_that_inflates_enormously_is_flagged(kind: bytes) -> None:
    def file(text: bytes) -> bytes:
        packed = zlib.compress(text, 9)
        return png_of(SCENE, [(kind, b"key\0\0" + packed if kind == b"zTXt" else b"key\0\1\0\0\0" + packed)])

    assert read(file(b"a" * 2**21)).flags == (Flag.SUSPECT,)
    assert read(file(b"a" * 1000)).flags == ()


def test_animation_counts_its_frames() -> None:
    frames = [Image.fromarray(SCENE), Image.fromarray(255 - SCENE), Image.fromarray(SCENE // 2)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "PNG", save_all=True, append_images=frames[1:])
    picture = read(buffer.getvalue())
    assert picture.frames == 3
    assert Flag.FIRST_FRAME in picture.flags
    assert np.array_equal(picture.pixels, SCENE)


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("background", [(255, 255, 255), (0, 0, 0), (10, 200, 77)])
def test_transparency_of_16_bits_is_laid_on_the_background_before_rounding(
    grey: bool, background: tuple[int, int, int]
) -> None:
    pixels = np.random.default_rng(2).integers(0, 65536, (40, 50, 2 if grey else 4), np.uint16)
    colours, opacity = pixels[..., :-1].astype(np.float64), pixels[..., -1:] / 65535
    exact = colours / 257 * opacity + np.array(background) * (1 - opacity)
    picture = read(png_of(pixels), background=background)
    assert picture.pixels.dtype == np.uint8
    # Half a level of the result, and half one of 16 bits.
    assert np.abs(picture.pixels - exact).max() <= 0.5 + 0.5 / 257 + 1e-9
    assert {Flag.DEPTH_REDUCED, Flag.ALPHA_COMPOSITED} <= set(picture.flags)
    assert Flag.DEPTH_RAISED not in picture.flags


def test_opaque_16_bits_with_alpha_are_rounded_like_those_without() -> None:
    pixels = np.random.default_rng(2).integers(0, 65536, (40, 50, 4), np.uint16)
    pixels[..., 3] = 65535
    assert np.array_equal(read(png_of(pixels)).pixels, read(png_of(np.ascontiguousarray(pixels[..., :3]))).pixels)
