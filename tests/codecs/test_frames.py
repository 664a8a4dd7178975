"""Frames of animations and pages against other decoders, and against files written byte for byte."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import imagecodecs
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from shardforge.codecs.canvas import over
from shardforge.codecs.decode import Picture, decode
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import LIMITS, corpus_file, png, riff_chunk, tiff, webp

BACKGROUND = (9, 99, 199)
RED, GREEN, BLUE, CLEAR = (255, 0, 0, 255), (0, 255, 0, 255), (0, 0, 255, 255), (0, 0, 0, 0)


def shown(data: bytes, frame: int | None, depth: Any = 8) -> Picture:
    return decode(data, channels=3, background=BACKGROUND, limits=LIMITS, frame=frame, depth=depth)


def reason(data: bytes, frame: int) -> Reason:
    with pytest.raises(SampleError) as caught:
        shown(data, frame)
    return caught.value.reason


def laid(rgba: NDArray[Any]) -> NDArray[np.float64]:
    """Straight RGBA on the background, in float64."""
    share = rgba[..., 3:] / 255.0
    return np.asarray(rgba[..., :3] * share + np.array(BACKGROUND) * (1 - share))


PILLOW = {
    "apng_dispose_op_background.png": 3, "chi.gif": 31, "dispose_prev.gif": 5,
    "made_anim.apng.png": 4, "made_anim.gif": 4, "made_multipage.tif": 3,
    "multipage.tiff": 3, "no_palette.gif": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", PILLOW)
def test_every_frame_is_the_one_that_pillow_shows(corpus: Path, name: str) -> None:
    data = corpus_file(corpus, f"anim/{name}")
    with Image.open(io.BytesIO(data)) as other:
        for frame in range(PILLOW[name]):
            picture = shown(data, frame)
            other.seek(frame)
            assert picture.frames == PILLOW[name]
            assert Flag.FRAME in picture.flags
            assert Flag.FIRST_FRAME not in picture.flags
            assert not picture.untouched
            assert np.abs(picture.pixels - laid(np.asarray(other.convert("RGBA")))).max() <= 0.5
    assert reason(data, PILLOW[name]) is Reason.TRUNCATED


def test_an_avif_sequence_is_over_budget_if_its_frames_are_together(corpus: Path) -> None:
    data = corpus_file(corpus, "formats/star.avifs")
    small = Limits(pixels=5 * 159 * 159 - 1)
    assert decode(data, channels=3, background=BACKGROUND, limits=small, frame=0).pixels.shape == (159, 159, 3)
    with pytest.raises(SampleError) as caught:
        decode(data, channels=3, background=BACKGROUND, limits=small, frame=1)
    assert caught.value.reason is Reason.OVER_BUDGET


@pytest.mark.parametrize(("name", "frames"), [("anim/made_anim.webp", 4), ("formats/star.avifs", 5)])
def test_every_frame_is_the_one_that_opencv_shows(corpus: Path, name: str, frames: int) -> None:
    data = corpus_file(corpus, name)
    _, animation = cv2.imdecodeanimation(np.frombuffer(data, np.uint8))
    assert len(animation.frames) == frames
    for frame, bgr in enumerate(animation.frames):
        rgba = cv2.cvtColor(bgr, cv2.COLOR_BGRA2RGBA if bgr.shape[2] == 4 else cv2.COLOR_BGR2RGBA)
        assert np.abs(shown(data, frame).pixels - laid(rgba)).max() <= 0.51


def test_the_first_frame_is_the_picture_that_is_taken_by_default(corpus: Path) -> None:
    for name in (*PILLOW, "made_anim.webp", "dispose_bgnd.gif"):
        data = corpus_file(corpus, f"anim/{name}")
        first = shown(data, None)
        assert Flag.FIRST_FRAME in first.flags
        assert np.array_equal(first.pixels, shown(data, 0).pixels)


# GIF: a table of four colours: red, green, blue, black; the last is transparent where a frame says so.
GIF_TABLE = bytes((255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0))


def gif_frame(left: int, top: int, indices: NDArray[np.uint8], disposal: int, transparent: bool) -> bytes:
    """A frame with uncompressed LZW codes: a clear code before every index keeps codes at 3 bits."""
    bits, count = 0, 0
    codes = [code for index in indices.ravel().tolist() for code in (4, index)] + [5]
    for place, code in enumerate(codes):
        bits, count = bits | code << 3 * place, 3 * (place + 1)
    packed = bits.to_bytes((count + 7) // 8, "little")
    blocks = b"".join(bytes([len(part)]) + part for part in (packed[i : i + 255] for i in range(0, len(packed), 255)))
    control = b"!\xf9\x04" + bytes([disposal << 2 | transparent, 0, 0, 3]) + b"\0"
    height, width = indices.shape
    return control + b"," + struct.pack("<HHHHB", left, top, width, height, 0) + b"\2" + blocks + b"\0"


def gif(width: int, height: int, *frames: bytes) -> bytes:
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF1, 0, 0) + GIF_TABLE + b"".join(frames) + b";"


def full(index: int, height: int = 3, width: int = 4) -> NDArray[np.uint8]:
    return np.full((height, width), index, np.uint8)


def colours(picture: Picture) -> list[list[int]]:
    """The pixels as numbers: 0 red, 1 green, 2 blue, 9 background."""
    known = {(255, 0, 0): 0, (0, 255, 0): 1, (0, 0, 255): 2, BACKGROUND: 9}
    return [[known[tuple(pixel)] for pixel in row] for row in picture.pixels.tolist()]


def test_gif_disposal_keeps_clears_or_restores_the_place_of_a_frame() -> None:
    spot = full(1, 1, 2)
    for disposal, below in ((0, 1), (1, 1), (2, 9), (3, 0)):
        data = gif(
            4, 3, gif_frame(0, 0, full(0), 0, False), gif_frame(1, 1, spot, disposal, False),
            gif_frame(0, 2, full(2, 1, 1), 0, False),
        )  # fmt: skip
        assert colours(shown(data, 1)) == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
        assert colours(shown(data, 2)) == [[0, 0, 0, 0], [0, below, below, 0], [2, 0, 0, 0]]


def test_gif_transparency_shows_what_is_below() -> None:
    mixed = np.array([[1, 3, 1, 3]] * 3, np.uint8)
    data = gif(4, 3, gif_frame(0, 0, full(0), 0, False), gif_frame(0, 0, mixed, 0, True))
    assert colours(shown(data, 1)) == [[1, 0, 1, 0]] * 3
    data = gif(4, 3, gif_frame(0, 0, full(0), 2, False), gif_frame(0, 0, mixed, 0, True))
    assert colours(shown(data, 1)) == [[1, 9, 1, 9]] * 3


def test_a_frame_that_fills_the_canvas_and_gives_it_back_hides_nothing() -> None:
    spot = gif_frame(0, 2, full(2, 1, 1), 0, False)
    data = gif(4, 3, gif_frame(0, 0, full(0), 0, False), gif_frame(0, 0, full(1), 3, False), spot)
    assert colours(shown(data, 1)) == [[1] * 4] * 3
    assert colours(shown(data, 2)) == [[0] * 4, [0] * 4, [2, 0, 0, 0]]


def test_a_gif_control_block_is_for_the_next_frame_only() -> None:
    plain = gif_frame(1, 1, full(3, 1, 1), 0, False)[8:]
    data = gif(4, 3, gif_frame(0, 0, full(0), 0, False), gif_frame(0, 0, full(1, 1, 1), 0, True), plain)
    assert shown(data, 2).pixels[1, 1].tolist() == [0, 0, 0]
    assert shown(data, 2).pixels[0, 0].tolist() == [0, 255, 0]


def test_a_frame_that_hides_all_before_survives_a_broken_one() -> None:
    broken = bytearray(gif_frame(0, 0, full(1), 0, False))
    broken[18] = 13  # no legal LZW code size
    data = gif(4, 3, gif_frame(0, 0, full(0), 0, False), bytes(broken), gif_frame(0, 0, full(2), 0, False))
    assert reason(data, 1) is Reason.CORRUPT
    assert colours(shown(data, 0)) == [[0] * 4] * 3
    assert colours(shown(data, 2)) == [[2] * 4] * 3


def test_a_gif_frame_outside_its_canvas_is_refused() -> None:
    data = gif(4, 3, gif_frame(0, 0, full(0), 0, False), gif_frame(3, 0, full(1), 0, False))
    assert reason(data, 1) is Reason.BAD_HEADER


def apng(
    width: int, height: int, frames: Sequence[tuple[NDArray[Any], int, int, int, int]], default: bool = True
) -> bytes:
    """Frames are (RGBA pixels, left, top, disposal, blend); the first is the default image or stands behind one."""
    depth = frames[0][0].itemsize * 8
    sequence = iter(range(100))
    before: list[tuple[bytes, bytes]] = [(b"acTL", struct.pack(">II", len(frames), 0))]
    after: list[tuple[bytes, bytes]] = []
    first = frames[0][0] if default else np.zeros((height, width, 4), frames[0][0].dtype)
    for number, (pixels, left, top, disposal, blend) in enumerate(frames):
        h, w = pixels.shape[:2]
        control = struct.pack(">IIIIIHHBB", next(sequence), w, h, left, top, 1, 10, disposal, blend)
        if default and number == 0:
            before.append((b"fcTL", control))
            continue
        rows = png(_rows(pixels), w, depth, 6)
        start = rows.index(b"IDAT")
        length = int.from_bytes(rows[start - 4 : start], "big")
        data = struct.pack(">I", next(sequence)) + rows[start + 4 : start + 4 + length]
        after += [(b"fcTL", control), (b"fdAT", data)]
    return png(_rows(first), width, depth, 6, before, after)


def _rows(pixels: NDArray[Any]) -> list[bytes]:
    return [row.astype(row.dtype.newbyteorder(">")).tobytes() for row in pixels]


def rgba(colour: Sequence[int], height: int = 3, width: int = 4) -> NDArray[np.uint8]:
    return np.broadcast_to(np.array(colour, np.uint8), (height, width, 4)).copy()


def test_apng_disposal_and_blending() -> None:
    for disposal, below in ((0, 1), (1, 9), (2, 0)):
        data = apng(
            4, 3, [(rgba(RED), 0, 0, 0, 0), (rgba(GREEN, 1, 2), 1, 1, disposal, 0), (rgba(BLUE, 1, 1), 0, 2, 0, 0)]
        )
        assert colours(shown(data, 1)) == [[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
        assert colours(shown(data, 2)) == [[0, 0, 0, 0], [0, below, below, 0], [2, 0, 0, 0]]
    for blend, seen in ((0, 9), (1, 0)):
        data = apng(4, 3, [(rgba(RED), 0, 0, 0, 0), (rgba(CLEAR), 0, 0, 0, blend)])
        assert colours(shown(data, 1)) == [[seen] * 4] * 3
    # What was there before the first frame is nothing.
    data = apng(4, 3, [(rgba(RED), 0, 0, 2, 0), (rgba(CLEAR), 0, 0, 0, 1)])
    assert colours(shown(data, 1)) == [[9] * 4] * 3


def test_a_default_image_outside_the_animation_is_no_frame_and_taken_where_one_is() -> None:
    data = apng(4, 3, [(rgba(GREEN, 1, 2), 1, 1, 0, 1), (rgba(BLUE, 1, 1), 0, 0, 0, 1)], default=False)
    assert shown(data, 0).frames == 2
    assert colours(shown(data, 0)) == [[9] * 4, [9, 1, 1, 9], [9] * 4]
    assert colours(shown(data, 1)) == [[2, 9, 9, 9], [9, 1, 1, 9], [9] * 4]
    assert reason(data, 2) is Reason.TRUNCATED
    still = shown(data, None)
    assert Flag.FIRST_FRAME in still.flags
    assert colours(still) == [[9] * 4] * 3


def test_frames_of_the_corpus_beside_a_default_image_are_those_that_pillow_shows(corpus: Path) -> None:
    data = corpus_file(corpus, "anim/made_apng_default_not_frame.png")
    with Image.open(io.BytesIO(data)) as other:
        # Pillow counts the default image as one more frame, its first.
        assert (other.n_frames, shown(data, 0).frames) == (3, 2)
        for seen, ours in ((0, None), (1, 0), (2, 1)):
            other.seek(seen)
            expected = laid(np.asarray(other.convert("RGBA")))
            assert np.abs(shown(data, ours).pixels - expected).max() <= 0.5


def test_half_transparent_frames_are_blended_as_in_float64() -> None:
    chance = np.random.default_rng(5)
    for dtype, depth in ((np.uint8, 8), (np.uint16, 16)):
        white = np.iinfo(dtype).max
        back, front = chance.integers(0, white + 1, (2, 9, 11, 4), dtype=dtype)
        a, b = front[..., 3:] / white, back[..., 3:] / white
        alpha = a + b * (1 - a)
        mixed = (front[..., :3] * a + back[..., :3] * b * (1 - a)) / alpha
        found = over(front, back)
        assert np.abs(found - np.concatenate([mixed, alpha * white], -1)).max() <= 0.51
        expected = mixed * alpha + np.array(BACKGROUND) * (white // 255) * (1 - alpha)
        data = apng(11, 9, [(back, 0, 0, 0, 0), (front, 0, 0, 0, 1)])
        assert np.abs(shown(data, 1, depth).pixels - expected).max() <= 1.5


def test_a_gap_in_the_sequence_of_an_apng_fails_the_frames_behind_it(corpus: Path) -> None:
    data = corpus_file(corpus, "anim/apng_sequence_gap.png")
    assert shown(data, 0).frames == 2
    assert reason(data, 1) is Reason.CORRUPT


def test_an_apng_that_ends_early_has_the_frames_that_are_whole() -> None:
    data = apng(4, 3, [(rgba(RED), 0, 0, 0, 0), (rgba(GREEN), 0, 0, 0, 0), (rgba(BLUE), 0, 0, 0, 0)])
    cut = data[: data.rindex(b"fdAT") + 8]
    assert colours(shown(cut, 1)) == [[1] * 4] * 3
    assert reason(cut, 2) is Reason.TRUNCATED
    flipped = bytearray(data)
    flipped[data.rindex(b"fdAT") + 9] ^= 1
    assert reason(bytes(flipped), 2) is Reason.CORRUPT


def webp_animation(width: int, height: int, frames: Sequence[tuple[NDArray[np.uint8], int, int, int]]) -> bytes:
    """Frames are (RGBA pixels, left, top, flags: 1 clears afterwards, 2 replaces)."""
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    parts = [(b"VP8X", b"\x12\0\0\0" + size), (b"ANIM", bytes(6))]
    for pixels, left, top, flags in frames:
        still = bytes(imagecodecs.webp_encode(pixels, lossless=True))
        at = still.index(b"VP8L")
        body = still[at + 8 : at + 8 + int.from_bytes(still[at + 4 : at + 8], "little")]
        h, w = pixels.shape[:2]
        head = b"".join(n.to_bytes(3, "little") for n in (left // 2, top // 2, w - 1, h - 1, 100)) + bytes([flags])
        parts.append((b"ANMF", head + riff_chunk(b"VP8L", body)))
    return webp(*parts)


@pytest.mark.parametrize("flags", range(4))
def test_parts_of_a_webp_canvas_are_drawn_as_opencv_draws_them(flags: int) -> None:
    clear = rgba(GREEN, 4, 4)
    clear[:2, :2] = CLEAR
    data = webp_animation(
        8, 6, [(rgba(RED, 6, 8), 0, 0, 0), (clear, 2, 2, flags), (rgba(BLUE, 2, 2), 6, 0, 0), (clear, 0, 0, flags)]
    )
    _, animation = cv2.imdecodeanimation(np.frombuffer(data, np.uint8))
    for frame, bgra in enumerate(animation.frames):
        expected = laid(cv2.cvtColor(bgra, cv2.COLOR_BGRA2RGBA) if bgra.shape[2] == 4 else bgra[..., ::-1])
        assert np.abs(shown(data, frame).pixels - expected).max() <= 0.51


def test_a_webp_cut_in_its_last_frame_has_the_others() -> None:
    data = webp_animation(
        8, 6, [(rgba(RED, 6, 8), 0, 0, 0), (rgba(GREEN, 6, 8), 0, 0, 0), (rgba(BLUE, 6, 8), 0, 0, 0)]
    )
    assert colours(shown(data[:-4], 1)) == [[1] * 8] * 6
    assert reason(data[:-4], 2) is Reason.TRUNCATED


def pages(*directories: tuple[int, int, int, int, int]) -> bytes:
    """A TIFF of constant grey pages: (width, height, level, orientation, NewSubfileType)."""
    files = [
        tiff(
            {254: (4, [kind]), 256: (3, [w]), 257: (3, [h]), 258: (3, [8]), 259: (3, [1]), 262: (3, [1]),
             274: (3, [turn]), 277: (3, [1]), 278: (3, [h])},
            bytes([level]) * (w * h),
        )
        for w, h, level, turn, kind in directories
    ]  # fmt: skip
    out, link = b"", 4
    for file in files:
        base = len(out)
        directory = struct.unpack_from("<I", file, 4)[0]
        count = struct.unpack_from("<H", file, directory)[0]
        moved = bytearray(file)
        for at in range(directory + 2, directory + 2 + 12 * count, 12):
            if struct.unpack_from("<H", moved, at)[0] == 273:
                struct.pack_into("<I", moved, at + 8, base + 8)
        joined = bytearray(out + bytes(moved))
        if base:
            struct.pack_into("<I", joined, link, base + directory)
        out, link = bytes(joined), base + directory + 2 + 12 * count
    return out


def test_pages_have_their_own_size_and_orientation_and_thumbnails_are_none() -> None:
    data = pages((4, 3, 10, 1, 0), (2, 2, 20, 1, 1), (5, 2, 30, 6, 2), (7, 7, 40, 1, 4), (6, 1, 50, 1, 0))
    found = [shown(data, frame) for frame in range(3)]
    assert [(p.source_width, p.source_height, int(p.pixels[0, 0, 0])) for p in found] == [
        (4, 3, 10),
        (2, 5, 30),
        (6, 1, 50),
    ]
    assert {picture.frames for picture in found} == {3}
    assert reason(data, 3) is Reason.TRUNCATED


def test_a_later_page_over_budget_is_refused_before_decoding() -> None:
    data = pages((4, 3, 10, 1, 0), (60000, 1, 20, 1, 0)).replace(struct.pack("<H", 60000), struct.pack("<H", 65000))
    huge = data.replace(struct.pack("<HHIHH", 257, 3, 1, 1, 0), struct.pack("<HHIHH", 257, 3, 1, 65000, 0))
    assert reason(huge, 1) is Reason.OVER_BUDGET
    assert shown(huge, 0).pixels.shape == (3, 4, 3)


def test_frames_of_a_format_without_any_are_refused() -> None:
    assert reason(png([b"\0"], 1, 8, 0), 1) is Reason.TRUNCATED
