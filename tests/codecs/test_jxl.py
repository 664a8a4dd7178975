"""Headers of JPEG XL: sizes and animation, against libjxl's encoder and the fields of ISO/IEC 18181-1."""

from __future__ import annotations

from pathlib import Path

import imagecodecs
import numpy as np
import pytest

import shardforge
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from tests.built import rows
from tests.codecs.image_files import read, rgb_scene

FRAMES = np.stack([np.full((20, 30, 3), level, np.uint8) for level in (10, 100, 200)])


def encoded(values: np.ndarray, **options: object) -> bytes:  # type: ignore[type-arg]
    return bytes(imagecodecs.jpegxl_encode(values, lossless=True, **options))


def codestream(*fields: tuple[int, int]) -> bytes:
    """A codestream of (bits, value), each byte filled from its lowest bit."""
    total = place = 0
    for bits, value in fields:
        total |= value << place
        place += bits
    return b"\xff\x0a" + total.to_bytes(place // 8 + 1, "little") + bytes(40)


@pytest.mark.parametrize("container", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (8, 8), (30, 20), (640, 480), (600, 1000), (4097, 3)])
def test_stills_of_the_encoder_have_one_frame_and_their_size(container: bool, size: tuple[int, int]) -> None:
    header = read_header(encoded(rgb_scene(*size), usecontainer=container), Limits())
    assert (header.width, header.height, header.frames, header.counted) == (*size, 1, True)


@pytest.mark.parametrize("container", [False, True])
def test_an_animation_has_several_frames_and_the_first_is_taken(container: bool) -> None:
    data = encoded(FRAMES, usecontainer=container)
    header = read_header(data, Limits())
    assert (header.width, header.height, header.counted) == (30, 20, False)
    assert header.frames > 1
    picture = read(data)
    assert np.array_equal(picture.pixels, FRAMES[0])
    assert "first_frame" in picture.flags


# SizeHeader: small, height / 8 - 1, a ratio of 1. ImageMetadata: not all default, extra fields, orientation - 1.
_SMALL = [(1, 1), (5, 2), (3, 1)]
_EXTRA = [(1, 0), (1, 1), (3, 5)]


@pytest.mark.parametrize("animated", [0, 1])
@pytest.mark.parametrize(
    "intrinsic",
    [
        [(1, 0)],
        [(1, 1), (1, 1), (5, 30), (3, 7)],
        [(1, 1), (1, 0), (2, 3), (30, 2**30 - 1), (3, 0), (2, 1), (13, 8191)],
    ],
)
@pytest.mark.parametrize(
    "preview",
    [
        [(1, 0)],
        [(1, 1), (1, 1), (2, 0), (3, 1)],
        [(1, 1), (1, 1), (2, 2), (5, 31), (3, 0), (2, 3), (9, 511)],
        [(1, 1), (1, 0), (2, 3), (12, 4095), (3, 0), (2, 0), (6, 63)],
    ],
)
def test_animation_is_found_behind_the_fields_before_it(
    animated: int, intrinsic: list[tuple[int, int]], preview: list[tuple[int, int]]
) -> None:
    # What follows is all ones where a still must not be mistaken, and zeros where an animation must not be missed.
    rest = [(60, 0 if animated else 2**60 - 1)]
    header = read_header(codestream(*_SMALL, *_EXTRA, *intrinsic, *preview, (1, animated), *rest), Limits())
    assert (header.width, header.height, header.frames) == (24, 24, 1 + animated)


def test_default_metadata_and_metadata_without_extra_fields_mean_a_still() -> None:
    ones = (60, 2**60 - 1)
    assert read_header(codestream(*_SMALL, (1, 1), ones), Limits()).frames == 1
    assert read_header(codestream(*_SMALL, (1, 0), (1, 0), ones), Limits()).frames == 1


@pytest.mark.parametrize(
    ("frames", "status", "reason"),
    [("first", "success", None), ("reject", "failed", "several_frames"), ("all", "failed", "unsupported")],
)
def test_builds_take_the_first_frame_or_say_why_not(
    tmp_path: Path, frames: str, status: str, reason: str | None
) -> None:
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "moving.jxl").write_bytes(encoded(FRAMES))
    (tmp_path / "raw" / "still.jxl").write_bytes(encoded(FRAMES[1]))
    shardforge.build(tmp_path / "raw", tmp_path / "out", frames=frames, max_errors="100%", size=16, quiet=True)  # type: ignore[arg-type]
    found = rows(tmp_path / "out")
    assert (found["moving.jxl"]["status"], found["moving.jxl"]["reason"]) == (status, reason)
    assert found["moving.jxl"]["n_frames"] is None
    assert (found["still.jxl"]["status"], found["still.jxl"]["n_frames"]) == ("success", 1)
