"""Builds that keep the sources' format: what could not stay as it was is said, and stays lossless where it was."""

from __future__ import annotations

import io
from pathlib import Path

import imagecodecs
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import shardforge
from tests.pictures import picture

SCENE = picture(3, 40, 24)


def jpeg(image: Image.Image, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def build(raw: Path, out: Path, **options: object) -> tuple[str, ...]:
    report = shardforge.build(raw, out, format="keep", quiet=True, workers=1, **options)  # type: ignore[arg-type]
    return tuple(line for line in report.warnings if "encoded again" in line)


def test_what_was_encoded_again_is_counted_by_cause(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    image = Image.fromarray(SCENE)
    files = {
        "plain": jpeg(image),
        "turned": jpeg(image, 6),
        "turned too": jpeg(image, 3),
        "grey": jpeg(image.convert("L")),
    }
    for name, data in files.items():
        (raw / f"{name}.jpg").write_bytes(data)
    (line,) = build(raw, tmp_path / "out")
    assert line.startswith("3 pictures were encoded again")
    assert "2 turned upright" in line
    assert "1 grey or CMYK, stored as RGB" in line
    assert "--reencode never" in line
    assert build(raw, tmp_path / "always", reencode="always") == ()


def test_nothing_is_said_where_all_files_stay(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "a.jpg").write_bytes(jpeg(Image.fromarray(SCENE)))
    assert build(raw, tmp_path / "out") == ()


@pytest.mark.parametrize("lossless", [True, False])
def test_a_lossless_webp_that_has_to_be_encoded_again_stays_lossless(tmp_path: Path, lossless: bool) -> None:
    raw, out = tmp_path / "raw", tmp_path / "out"
    raw.mkdir()
    alpha = np.full((24, 40, 1), 255, np.uint8)
    alpha[:4] = 0
    data = bytes(imagecodecs.webp_encode(np.concatenate([SCENE, alpha], axis=2), level=60, lossless=lossless))
    (raw / "a.webp").write_bytes(data)
    (line,) = build(raw, out)
    assert "1 with transparency" in line
    row = pq.read_table(next(out.glob("*.parquet"))).to_pylist()[0]
    tar = next(out.glob("*.tar")).read_bytes()
    stored = tar[row["webp_offset"] : row["webp_offset"] + row["webp_size"]]
    assert stored[12:16] == (b"VP8L" if lossless else b"VP8 ")
    if lossless:
        expected = SCENE.copy()
        expected[:4] = 255
        assert np.array_equal(np.asarray(imagecodecs.webp_decode(stored)), expected)
