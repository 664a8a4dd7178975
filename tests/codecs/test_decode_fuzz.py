"""Whatever the bytes, decoding returns a picture or raises :class:`SampleError`."""

from __future__ import annotations

import io
import random
from contextlib import suppress
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
import simplejpeg
from PIL import Image

from shardforge.codecs.decode import decode, decode_mask
from shardforge.codecs.limits import Limits
from shardforge.codecs.strip import strip_metadata
from shardforge.errors import SampleError
from tests.codecs.image_files import exif, png_of, rgb_scene, tiff_of
from tests.codecs.test_frames import apng, full, gif, gif_frame, pages, webp_animation

SMALL = Limits(pixels=4_000_000, frames=100)
SCENE = rgb_scene(40, 28)
LOSSLESS = ("jpeg", "png", "webp")


def _saved(kind: str, mode: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(SCENE).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def _seeds() -> list[bytes]:
    return [
        simplejpeg.encode_jpeg(SCENE, 90),
        png_of(SCENE, [(b"eXIf", exif(6))]),
        png_of(SCENE.astype(np.uint16) * 257),
        bytes(imagecodecs.webp_encode(SCENE, level=80)),
        bytes(imagecodecs.webp_encode(SCENE, lossless=True)),
        tiff_of(SCENE, 2, t274=(3, [6])),
        tiff_of(SCENE[:, :, 0].astype(np.float32), 1),
        bytes(imagecodecs.avif_encode(SCENE, level=80, numthreads=1)),
        bytes(imagecodecs.jpegxl_encode(SCENE, level=80, numthreads=1)),
        bytes(imagecodecs.jpeg2k_encode(SCENE, level=80, numthreads=1)),
        bytes(imagecodecs.qoi_encode(SCENE)),
        _saved("GIF", "P"),
        *_animations(),
        _saved("BMP", "RGB"),
        _saved("BMP", "P"),
        _saved("TGA", "RGB"),
        _saved("PCX", "RGB"),
        _saved("ICO", "RGBA"),
        b"P6 40 28 255\n" + SCENE.tobytes(),
        b"P2 3 1 10 0 5 10\n",
    ]


def _animations() -> list[bytes]:
    spot = SCENE[:7, :9]
    opaque = np.dstack([SCENE, np.full(SCENE.shape[:2], 255, np.uint8)])
    half = np.dstack([spot, np.full(spot.shape[:2], 99, np.uint8)])
    return [
        gif(40, 28, *(gif_frame(n, n, full(n, 5, 6), n, n > 1) for n in range(4))),
        apng(40, 28, [(opaque, 0, 0, 0, 0), (half, 3, 2, 1, 1), (half, 1, 1, 2, 0)]),
        webp_animation(40, 28, [(opaque, 0, 0, 0), (half, 4, 2, 1), (half, 2, 2, 2)]),
        pages((4, 3, 10, 1, 0), (5, 2, 30, 6, 2), (6, 1, 50, 1, 0)),
    ]


def _mutated(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.15:
        return data[: rng.randrange(len(data))]
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        at = rng.randrange(min(len(damaged), rng.choice((64, 512, len(damaged)))))
        match rng.randrange(5):
            case 0:
                damaged[at] = rng.randrange(256)
            case 1:
                damaged[at] ^= 1 << rng.randrange(8)
            case 2:
                damaged[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"))
            case 3:
                del damaged[at : at + rng.randrange(1, 50)]
            case _:
                damaged[at:at] = rng.randbytes(rng.randrange(1, 20))
        if not damaged:
            break
    return bytes(damaged)


def _check(rng: random.Random, data: bytes) -> None:
    channels = rng.choice((1, 3))
    with suppress(SampleError):
        depth, frame = rng.choice((8, 16)), rng.choice((None, None, 0, 1, 2))
        picture = decode(
            data,
            channels=channels,
            background=(1, 2, 3),
            limits=SMALL,
            depth=depth,
            frame=frame,
            keep_damaged=rng.random() < 0.5,
        )
        assert picture.pixels.shape == (picture.source_height, picture.source_width, channels)
        assert picture.pixels.dtype == (np.uint8 if depth == 8 else np.uint16)
        assert picture.pixels.flags.c_contiguous
        if picture.format in LOSSLESS:
            strip_metadata(data, picture.format)
    with suppress(SampleError):
        labels = decode_mask(data, limits=SMALL, orientation=rng.randrange(1, 9)).labels
        assert labels.ndim == 2
        assert labels.dtype in (np.uint8, np.uint16)


def test_damaged_files_of_every_format_are_decoded_or_refused() -> None:
    for number, seed in enumerate(_seeds()):
        rng = random.Random(number)
        decode(seed, channels=3, background=(0, 0, 0), limits=SMALL)
        for _ in range(60):
            _check(rng, _mutated(rng, seed))


def test_random_bytes_behind_every_signature_are_refused_or_decoded() -> None:
    rng = random.Random(99)
    for seed in _seeds():
        for length in (12, 32, 128):
            _check(rng, seed[:length] + rng.randbytes(400))


@pytest.mark.long
@pytest.mark.parametrize("part", range(8))
def test_damaged_corpus_files_are_decoded_or_refused(corpus: Path, part: int) -> None:
    paths = [p for p in sorted((corpus / "images").rglob("*")) if p.is_file() and 0 < p.stat().st_size < 60_000]
    files = [path.read_bytes() for path in paths]
    rng = random.Random(part)
    for _ in range(1500):
        _check(rng, _mutated(rng, rng.choice(files)))
