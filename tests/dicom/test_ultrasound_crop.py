"""The crop of ultrasound pictures: the scan, inside the image, and nothing when the header is absurd."""

from __future__ import annotations

from pathlib import Path

import pydicom
import pytest

from shardforge.dicom.ultrasound_crop import UltrasoundRegion, crop_to_scan

TISSUE = UltrasoundRegion(100, 50, 299, 249, 1, 1)


def _regions(path: Path) -> tuple[list[UltrasoundRegion], int, int]:
    ds = pydicom.dcmread(path, stop_before_pixels=True)
    regions = [
        UltrasoundRegion(
            item.RegionLocationMinX0,
            item.RegionLocationMinY0,
            item.RegionLocationMaxX1,
            item.RegionLocationMaxY1,
            item.RegionSpatialFormat,
            item.RegionDataType,
        )
        for item in ds.SequenceOfUltrasoundRegions
    ]
    return regions, ds.Columns, ds.Rows


@pytest.mark.parametrize(
    ("name", "largest", "union"),
    [
        # As the headers have it: 120..800 of 800 columns, 60..518 of 350 rows; an ECG strip below the scan.
        ("color/examples_palette.dcm", (120, 60, 800, 350), (120, 60, 800, 350)),
        ("color/OBXXXX1A_rle_2frame.dcm", (120, 60, 800, 519), (120, 60, 800, 519)),
        # Two scans side by side, 304 and 304 columns wide, and a grey bar.
        ("color/gdcm-US-ALOKA-16.dcm", (32, 24, 336, 416), (32, 24, 640, 416)),
        ("color/US-YBR_FULL_422-EVRLE.dcm", (184, 75, 800, 555), (184, 75, 800, 555)),
        ("ts/JPGLosslessP14SV1_1s_1f_8b.dcm", (14, 38, 1011, 759), (14, 38, 1011, 759)),
    ],
)
def test_the_regions_of_real_files(
    name: str, largest: tuple[int, int, int, int], union: tuple[int, int, int, int], corpus: Path
) -> None:
    regions, width, height = _regions(corpus / "dicom" / name)
    assert crop_to_scan(regions, width, height) == largest
    assert crop_to_scan(regions, width, height, "union") == union


def test_the_last_row_and_column_belong_to_the_region() -> None:
    assert crop_to_scan([TISSUE], 400, 300) == (100, 50, 300, 250)


def test_a_region_that_leaves_the_image_is_clipped() -> None:
    assert crop_to_scan([UltrasoundRegion(-5, -1, 9999, 120, 1, 2)], 400, 300) == (0, 0, 400, 121)


@pytest.mark.parametrize(
    "region",
    [
        UltrasoundRegion(299, 50, 100, 249, 1, 1),
        UltrasoundRegion(400, 0, 500, 299, 1, 1),
        UltrasoundRegion(0, 0, 0, 0, 1, 1),
        UltrasoundRegion(0, 0, 399, 10, 1, 1),
        UltrasoundRegion(2**32 - 1, 0, 2**32 - 1, 299, 1, 1),
        UltrasoundRegion(0, 0, 40, 40, 1, 1),
        UltrasoundRegion(100, 50, 299, 249, 4, 10),
        UltrasoundRegion(100, 50, 299, 249, 1, 14),
        UltrasoundRegion(100, 50, 299, 249, 3, 3),
    ],
)
def test_an_absurd_region_or_one_that_is_no_scan_is_no_crop(region: UltrasoundRegion) -> None:
    width, height = (4000, 3000) if region.max_x == 40 else (400, 300)
    assert crop_to_scan([region], width, height) is None
    assert crop_to_scan([], width, height) is None
