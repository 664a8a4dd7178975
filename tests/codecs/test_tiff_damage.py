"""Damaged strips and tiles of TIFF files that libtiff decodes without a word to its caller."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
import simplejpeg
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

from shardforge.codecs.decode import Picture
from shardforge.codecs.tiff import decode_labels
from shardforge.codecs.tiff_tags import directories
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import corpus_file, outcome, read

PHOTO = np.ascontiguousarray(load_sample_image("flower.jpg")[::3, ::4])
ROWS = 32


def strips(data: bytes) -> list[tuple[int, int]]:
    page = next(directories(data))
    offsets = page.integers(273) or page.integers(324)
    return list(zip(offsets, page.integers(279) or page.integers(325), strict=True))


def cv2_tiff(pixels: NDArray[np.uint8], compression: int) -> bytes:
    options = [cv2.IMWRITE_TIFF_COMPRESSION, compression, cv2.IMWRITE_TIFF_ROWSPERSTRIP, ROWS]
    done, data = cv2.imencode(
        ".tif", np.ascontiguousarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels), options
    )
    assert done
    return data.tobytes()


def built(parts: Sequence[bytes], tags: dict[int, tuple[int, Sequence[int]]]) -> bytes:
    """A little endian TIFF of the given strips or tiles."""
    places, body = [], b""
    for part in parts:
        places.append(8 + len(body))
        body += part + b"\0" * (len(part) % 2)
    offsets, sizes = (324, 325) if 322 in tags else (273, 279)
    entries = {**tags, offsets: (4, places), sizes: (4, [len(part) for part in parts])}
    start = 8 + len(body)
    extra_at, extra, table = start + 2 + 12 * len(entries) + 4, b"", b""
    for number, (kind, values) in sorted(entries.items()):
        packed = struct.pack(f"<{len(values)}{'H' if kind == 3 else 'I'}", *values)
        if len(packed) > 4:
            field, extra = struct.pack("<I", extra_at + len(extra)), extra + packed
        else:
            field = packed.ljust(4, b"\0")
        table += struct.pack("<HHI", number, kind, len(values)) + field
    head = b"II" + struct.pack("<HI", 42, start) + body
    return head + struct.pack("<H", len(entries)) + table + bytes(4) + extra


def jpeg_tiles(grey: bool) -> bytes:
    tiles = [np.ascontiguousarray(PHOTO[top : top + 64, left : left + 64]) for top in (0, 64) for left in (0, 64)]
    if grey:
        parts = [simplejpeg.encode_jpeg(np.ascontiguousarray(t[..., :1]), 90, "GRAY", "Gray") for t in tiles]
    else:
        parts = [simplejpeg.encode_jpeg(tile, 90, colorsubsampling="420") for tile in tiles]
    samples = 1 if grey else 3
    tags: dict[int, tuple[int, Sequence[int]]] = {
        256: (3, [128]),
        257: (3, [128]),
        258: (3, [8] * samples),
        259: (3, [7]),
        262: (3, [1 if grey else 6]),
        277: (3, [samples]),
        322: (3, [64]),
        323: (3, [64]),
    }
    if not grey:
        tags[530] = (3, [2, 2])
    return built(parts, tags)


JPEGS = {
    "rgb strips, tables apart": cv2_tiff(PHOTO, 7),
    "grey strips, tables apart": cv2_tiff(PHOTO[..., 1], 7),
    "ycbcr tiles": jpeg_tiles(False),
    "grey tiles": jpeg_tiles(True),
}


@pytest.mark.parametrize("kind", JPEGS)
def test_jpeg_strips_destroyed_or_cut_are_refused(kind: str) -> None:
    data = JPEGS[kind]
    assert read(data).flags == ()
    at, size = strips(data)[1]
    scan = data.index(b"\xff\xda", at) + 14
    for begin in (at, at + 2, scan, (scan + at + size) // 2):
        destroyed = data[:begin] + bytes(at + size - begin) + data[at + size :]
        assert outcome(destroyed) in (Reason.CORRUPT, Reason.TRUNCATED), begin
    cut = data[: (scan + at + size) // 2] + b"\xff\xd9" + bytes(at + size - (scan + at + size) // 2 - 2)
    assert outcome(cut + data[at + size :]) in (Reason.CORRUPT, Reason.TRUNCATED)


@pytest.mark.parametrize("kind", JPEGS)
def test_noise_in_a_jpeg_strip_is_refused_about_as_in_a_jpeg_file(kind: str) -> None:
    data = JPEGS[kind]
    at, size = strips(data)[1]
    scan = data.index(b"\xff\xda", at) + 14
    refused = 0
    for seed in range(20):
        noise = np.random.default_rng(seed).integers(1, 255, 48, np.uint8).tobytes()
        middle = scan + (at + size - scan) * (seed + 2) // 30
        refused += isinstance(outcome(data[:middle] + noise + data[middle + len(noise) :]), Reason)
    assert refused >= 10


def test_a_jpeg_strip_without_its_end_marker_is_kept_and_flagged() -> None:
    data = JPEGS["ycbcr tiles"]
    at, size = strips(data)[3]
    picture = outcome(data[: at + size - 2] + b"\0\0" + data[at + size :])
    assert isinstance(picture, Picture)
    assert set(picture.flags) == {Flag.SUSPECT, Flag.MISSING_EOI}
    assert np.array_equal(picture.pixels, read(data).pixels)


def test_a_strip_of_a_huge_picture_is_refused_before_it_is_decoded() -> None:
    data = JPEGS["grey tiles"]
    at, _ = strips(data)[0]
    frame = data.index(b"\xff\xc0", at)
    assert isinstance(outcome(data[: frame + 5] + b"\xff\xff\xff\xff" + data[frame + 9 :]), Reason)


@pytest.mark.parametrize("name", ["formats/hopper_jpg.tif", "formats/tiff_tiled_ycbcr_jpeg_2x2_sampling.tif"])
def test_destroyed_strips_of_files_from_elsewhere_are_refused(corpus: Path, name: str) -> None:
    data = corpus_file(corpus, name)
    for at, size in strips(data):
        assert outcome(data[: at + size // 2] + bytes(size - size // 2) + data[at + size :]) in (
            Reason.CORRUPT,
            Reason.TRUNCATED,
        )


def deflated(change: bytes | None = None) -> bytes:
    parts = [zlib.compress(PHOTO[top : top + ROWS, :, 0].tobytes()) for top in range(0, 128, ROWS)]
    parts[2] = parts[2] if change is None else change
    tags: dict[int, tuple[int, Sequence[int]]] = {
        256: (3, [PHOTO.shape[1]]),
        257: (3, [128]),
        258: (3, [8]),
        259: (3, [8]),
        262: (3, [1]),
        277: (3, [1]),
        278: (3, [ROWS]),
    }
    return built(parts, tags)


def test_deflate_strips_are_compared_with_their_checksums() -> None:
    whole = read(deflated()).pixels
    assert np.array_equal(whole[..., 0], PHOTO[:128, :, 0])
    strip = zlib.compress(PHOTO[64:96, :, 0].tobytes())
    for seed in range(10):
        broken = bytearray(strip)
        broken[len(strip) // 3 + seed] ^= 1 << seed % 8
        assert outcome(deflated(bytes(broken))) is Reason.CORRUPT
        with pytest.raises(SampleError):
            decode_labels(deflated(bytes(broken)))
    assert outcome(deflated(strip[: len(strip) // 2])) in (Reason.CORRUPT, Reason.TRUNCATED)
    assert outcome(deflated(strip[: len(strip) // 2] + bytes(len(strip) // 2))) in (Reason.CORRUPT, Reason.TRUNCATED)
