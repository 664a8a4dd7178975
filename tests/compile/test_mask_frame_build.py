"""Masks drawn over upright pictures and over stored pixels, for every EXIF orientation, on any shape of image."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps

import shardforge

SIZES = ((40, 40), (40, 24))


def make(folder: Path, frame: str) -> None:
    """A red corner in each picture, and a mask of it as one sees it, or over the pixels as they are stored."""
    for width, height in SIZES:
        for orientation in range(1, 9):
            stored = np.full((height, width, 3), 255, np.uint8)
            stored[:8, :16] = (255, 0, 0)
            labels = (stored[..., 1] == 0).astype(np.uint8) * 137
            exif = Image.Exif()
            exif[0x0112] = orientation
            name = f"{width}x{height}_{orientation}"
            Image.fromarray(stored).save(folder / f"{name}.jpg", exif=exif, quality=100, subsampling=0)
            mask = Image.fromarray(labels)
            if frame == "upright":
                mask.getexif()[0x0112] = orientation
                mask = ImageOps.exif_transpose(mask)
                mask = Image.fromarray(np.asarray(mask))
            mask.save(folder / f"{name}.mask.png")


def found(out: Path) -> dict[str, tuple[set[str], str, np.ndarray | None, np.ndarray | None]]:
    tar = next(out.glob("*.tar")).read_bytes()
    result = {}
    for row in pq.read_table(next(out.glob("*.parquet"))).to_pylist():

        def picture(field: str, row: dict = row) -> np.ndarray | None:  # type: ignore[type-arg]
            at, size = row[f"{field}_offset"], row[f"{field}_size"]
            return None if not size else np.asarray(Image.open(io.BytesIO(tar[at : at + size])))

        reason = row["reason"] or row["status"]
        result[row["source"][:-4]] = (set(row["flags"] or ()), reason, picture("png"), picture("mask.png"))
    return result


@pytest.mark.parametrize("frame", ["upright", "stored"])
def test_masks_lie_on_their_images_in_both_frames(tmp_path: Path, frame: str) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    make(raw, frame)
    options = {} if frame == "upright" else {"mask_frame": "stored"}
    shardforge.build(raw, tmp_path / "out", resize="none", format="png", quiet=True, workers=1, **options)
    rows = found(tmp_path / "out")
    assert len(rows) == 16
    for name, (flags, _, image, mask) in rows.items():
        assert image is not None, name
        assert mask is not None, name
        np.testing.assert_array_equal(mask == 137, image[..., 1] < 128, err_msg=name)
        assert ("mask_oriented" in flags) == (frame == "stored" and not name.endswith("_1")), name


def test_a_size_that_contradicts_the_frame_is_refused(tmp_path: Path) -> None:
    for given, told in (("upright", "stored"), ("stored", "upright")):
        raw, out = tmp_path / given, tmp_path / f"out-{given}"
        raw.mkdir()
        make(raw, given)
        shardforge.build(
            raw, out, resize="none", format="png", quiet=True, workers=1, mask_frame=told, max_errors="100%"
        )
        reasons = {name: reason for name, (_, reason, *_) in found(out).items()}
        mismatched = {name for name, reason in reasons.items() if reason == "mask_mismatch"}
        assert mismatched == {f"40x24_{orientation}" for orientation in range(5, 9)}
