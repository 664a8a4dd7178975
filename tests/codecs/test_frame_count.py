"""Counting frames without reading what is in them agrees with the reader of headers, and is bounded."""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path

import pytest

from shardforge.codecs.frame_count import FrameCount, count_frames
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from tests.codecs.image_files import corpus_file, png
from tests.codecs.test_frames import RED, apng, full, gif, gif_frame, pages, rgba, webp_animation

WIDE = Limits(pixels=10**15, frames=10**9)
MOST = 10_000


class Watched(io.BytesIO):
    """Counts the bytes that are read."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def count(data: bytes, most: int = MOST) -> FrameCount:
    return count_frames(io.BytesIO(data), len(data), most)


def _samples() -> list[bytes]:
    return [
        gif(4, 3, *(gif_frame(0, 0, full(n), 0, False) for n in (0, 1, 2))),
        apng(4, 3, [(rgba(RED), 0, 0, 0, 0)] * 3),
        apng(4, 3, [(rgba(RED), 0, 0, 0, 0)] * 3, default=False),
        webp_animation(8, 6, [(rgba(RED, 6, 8), 0, 0, 0)] * 4),
        pages((4, 3, 10, 1, 0), (2, 2, 20, 1, 1), (5, 2, 30, 6, 2), (7, 7, 40, 1, 4), (6, 1, 50, 1, 0)),
    ]


def test_frames_are_those_that_the_header_has() -> None:
    assert [count(data).frames for data in _samples()] == [3, 3, 3, 4, 3]
    assert [count(data).pixels for data in _samples()] == [36, 36, 36, 192, 12 + 10 + 6]
    assert count(b"").frames == count(b"GIF89a").frames == count(b"II*\0").frames == count(b"no picture").frames == 1


def test_every_file_of_the_corpus_has_the_frames_of_its_header(corpus: Path) -> None:
    several = 0
    assert count(corpus_file(corpus, "formats/star.avifs")) == FrameCount(5, 5 * 159 * 159)
    for path in sorted((corpus / "images").rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            try:
                header = read_header(data, WIDE)
            except SampleError:
                count(data)
                continue
            if header.format not in ("heif", "jxl"):
                assert count(data).frames == header.frames, path
                several += header.frames > 1
    assert several > 12


def test_damaged_files_are_counted_without_an_error() -> None:
    for number, data in enumerate(_samples()):
        rng = random.Random(number)
        for _ in range(400):
            damaged = bytearray(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
            for _ in range(rng.choice((0, 1, 3, 10)) if damaged else 0):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            assert count(bytes(damaged)).frames >= 1


def test_counting_stops_beyond_the_limit_and_at_loops() -> None:
    frame = gif_frame(0, 0, full(0, 1, 1), 0, False)
    many = gif(1, 1, *[frame] * 500)
    file = Watched(many)
    assert count_frames(file, len(many), 20).frames == 21
    assert file.taken < 1500
    looped = bytearray(pages((4, 3, 10, 1, 0)))
    struct.pack_into("<I", looped, len(looped) - 4, struct.unpack_from("<I", looped, 4)[0])
    assert count(bytes(looped)).frames == 1
    claimed = png([b"\0"], 1, 8, 0, [(b"acTL", struct.pack(">II", 2**31, 0))])
    assert count(claimed).frames > MOST


def test_a_directory_of_millions_of_tags_is_not_read() -> None:
    data = b"II+\0" + struct.pack("<HHQ", 8, 0, 16) + struct.pack("<Q", 4_000_000) + bytes(80_000_000)
    file = Watched(data)
    assert count_frames(file, len(data), MOST).frames == 1
    assert file.taken < 10_000


@pytest.mark.parametrize("name", ["anim/chi.gif", "anim/made_anim.webp", "anim/made_multipage.tif"])
def test_little_of_a_file_is_read(corpus: Path, name: str) -> None:
    data = corpus_file(corpus, name)
    file = Watched(data)
    count_frames(file, len(data), MOST)
    assert file.taken < 600 + len(data) // 30
