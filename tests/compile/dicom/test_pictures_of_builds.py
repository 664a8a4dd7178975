"""What builds store of DICOM images: windows, depths, values, square pixels, crops, and what follows them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from numpy.typing import NDArray
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

import shardforge
from shardforge.shards.verify import verify
from shardforge.transforms import Window
from tests.dicom_builds import all_rows, mask_of, picture_of
from tests.dicom_made import write_image

pytestmark = pytest.mark.xdist_group("pictures of DICOM builds")

MAMMOGRAPHY = "1.2.840.10008.5.1.4.1.1.1.2"
ULTRASOUND = "1.2.840.10008.5.1.4.1.1.6.1"
RADIOGRAPHY = "1.2.840.10008.5.1.4.1.1.1.1"


def build(source: Path, out: Path, key_file: Path, **options: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"format": "png", "workers": 1, "quiet": True, "max_errors": "100%", **options}
    shardforge.build(source, out, kind="dicom", key_file=key_file, **given)
    assert verify(out).damage == ()
    return all_rows(out)


@pytest.fixture(scope="module")
def slices(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two slices of a CT, and one that has padding."""
    folder = tmp_path_factory.mktemp("slices")
    for name in ("series_ct/IMG0003.dcm", "series_ct/IMG0009.dcm", "bits/693_UNCI.dcm"):
        shutil.copy(corpus / "dicom" / name, folder)
    return folder


@pytest.fixture(scope="module")
def values(slices: Path, tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Path:
    out = tmp_path_factory.mktemp("values") / "out"
    build(slices, out, key_file, format="npy", window="none", size=64)
    return out


@pytest.fixture(scope="module")
def three_windows(slices: Path, tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Path:
    out = tmp_path_factory.mktemp("windows") / "out"
    build(slices, out, key_file, window="brain,subdural,bone", size=64)
    return out


def test_windows_become_channels_that_equal_builds_of_one(
    slices: Path, three_windows: Path, tmp_path: Path, key_file: Path
) -> None:
    together = {row["key"]: picture_of(three_windows, row) for row in all_rows(three_windows)}
    assert len(together) == 3
    for channel, window in enumerate(("brain", "80/200", "bone")):
        alone = build(slices, tmp_path / str(channel), key_file, window=window, size=64)
        for row in alone:
            picture = picture_of(tmp_path / str(channel), row)
            assert np.array_equal(picture[:, :, 0], together[row["key"]][:, :, channel])
            assert len(np.unique(picture)) > 20


def test_a_window_in_training_equals_the_builds_to_the_bit(values: Path, three_windows: Path) -> None:
    stored = {row["key"]: row for row in all_rows(three_windows)}
    data = shardforge.ShardDataset(
        values, shuffle=False, fields=("image", "key"), transform=Window("brain,subdural,bone")
    )
    compared = 0
    for sample in data:
        row, image = stored[sample["key"]], np.asarray(sample["image"])
        wanted = picture_of(three_windows, row)
        if row["dicom_padding_fraction"]:
            # What is padding is a matter of the file: it is black in the build, and the darkest value in the values.
            assert (wanted[image != wanted] == 0).all()
            continue
        assert np.array_equal(image, wanted)
        compared += 1
    assert compared == 2


def test_stored_int16_are_the_modality_values(slices: Path, tmp_path: Path, key_file: Path) -> None:
    rows = build(slices, tmp_path / "out", key_file, format="npy", window="none", resize="none", identifiers="keep")
    assert len(rows) == 3
    for row in rows:
        ds = pydicom.dcmread(slices / row["source"])
        wanted = ds.pixel_array.astype(np.int32) * int(ds.RescaleSlope) + int(ds.RescaleIntercept)
        padding = ds.pixel_array == ds.get("PixelPaddingValue", 1 << 20)
        found = picture_of(tmp_path / "out", row)[:, :, 0]
        assert found.dtype == np.int16
        assert np.array_equal(found[~padding], wanted[~padding])
        assert (found[padding] == wanted[~padding].min()).all()


def test_sixteen_bits_have_the_windows_full_depth(slices: Path, tmp_path: Path, key_file: Path) -> None:
    options: dict[str, Any] = {"depth": 16, "window": "40/400", "resize": "none", "identifiers": "keep"}
    rows = build(slices, tmp_path / "out", key_file, **options)
    assert len(rows) == 3
    for row in rows:
        ds = pydicom.dcmread(slices / row["source"])
        x = ds.pixel_array.astype(np.float64) * float(ds.RescaleSlope) + float(ds.RescaleIntercept)
        y = np.clip((x - 39.5) / 399 + 0.5, 0, 1)
        y[ds.pixel_array == ds.get("PixelPaddingValue", 1 << 20)] = 0
        found = picture_of(tmp_path / "out", row)[:, :, 0]
        assert found.dtype == np.uint16
        assert np.array_equal(found, np.floor(y * 65535 + 0.5).astype(np.uint16))


def _spread(grey: NDArray[Any]) -> tuple[int, int]:
    """Width and height of what is brighter than half."""
    rows, columns = np.nonzero(grey > grey.max() / 2)
    return int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1


def test_pixels_that_are_not_square_are_made_so(tmp_path: Path, key_file: Path) -> None:
    disc = np.zeros((40, 80), np.uint8)
    y, x = np.mgrid[0:40, 0:80]
    disc[((y - 20) * 2) ** 2 + (x - 40) ** 2 <= 30**2] = 200
    made: dict[str, dict[str, Any]] = {
        "spacing": {"PixelSpacing": [1.6, 0.8]},
        "aspect": {"PixelSpacing": None, "PixelAspectRatio": [2, 1]},
        "imager": {"PixelSpacing": None, "ImagerPixelSpacing": [0.2, 0.1]},
    }
    for number, (name, attributes) in enumerate(made.items()):
        given = {"Modality": "DX", "SOPClassUID": RADIOGRAPHY, "SOPInstanceUID": f"1.2.3.{number}", **attributes}
        write_image(tmp_path / "raw" / name, disc, SeriesInstanceUID=f"1.2.{number}", **given)
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, resize="none", window="100/200", identifiers="keep")
    assert {row["source"] for row in rows} == set(made)
    for row in rows:
        picture = picture_of(tmp_path / "out", row)[:, :, 0]
        assert picture.shape == (80, 80)
        width, height = _spread(picture)
        assert abs(width - height) <= 2, row["source"]
        assert (row["scale_x"], row["scale_y"]) == (1, 2)
        assert (row["original_width"], row["original_height"]) == (80, 40)


@pytest.mark.parametrize("name", ["made_aspect_2_1.dcm", "made_spacing_nonsquare.dcm"])
def test_the_corpus_pictures_with_other_pixels_become_square(
    corpus: Path, tmp_path: Path, key_file: Path, name: str
) -> None:
    (tmp_path / "raw").mkdir()
    shutil.copy(corpus / "dicom" / "bits" / name, tmp_path / "raw")
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, resize="none", burned_in="keep")
    assert (row["width"], row["height"]) == (64, 64)
    (row,) = build(tmp_path / "raw", tmp_path / "small", key_file, resize="longest", size=32, burned_in="keep")
    assert (row["width"], row["height"]) == (32, 32)
    assert (row["scale_x"], row["scale_y"]) == (0.5, 1)


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_what_is_padded_around_is_black(tmp_path: Path, key_file: Path, photometric: str) -> None:
    picture = np.full((20, 40), 2000, np.uint16)
    write_image(
        tmp_path / "raw" / "a",
        picture,
        PixelSpacing=[1, 1],
        PhotometricInterpretation=photometric,
        SOPClassUID=RADIOGRAPHY,
        Modality="DX",
    )
    # 2000 is in the middle of the window, whichever way it is shown.
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, resize="pad", size=40, window="2000/1000")
    found = picture_of(tmp_path / "out", row)[:, :, 0]
    assert found.shape == (40, 40)
    assert (row["offset_x"], row["offset_y"]) == (0, 10)
    assert (found[:10] == 0).all()
    assert (found[30:] == 0).all()
    assert (np.abs(found[10:30].astype(int) - 128) <= 1).all()


def mammogram(dot: tuple[int, int]) -> NDArray[np.uint16]:
    """160 × 120: a breast on the left, a marker apart from it, and a bright dot of 3 × 3 around (x, y)."""
    y, x = np.mgrid[0:160, 0:120]
    picture = np.zeros((160, 120), np.uint16)
    picture[((y - 80) / 60) ** 2 + (x / 70) ** 2 <= 1] = 1500
    picture[5:9, 105:115] = 3000
    picture[dot[1] - 1 : dot[1] + 2, dot[0] - 1 : dot[0] + 2] = 4000
    return picture


def write_mammogram(path: Path, dot: tuple[int, int], **attributes: Any) -> None:
    given = {"Modality": "MG", "SOPClassUID": MAMMOGRAPHY, "PixelSpacing": None, "ImagerPixelSpacing": [0.1, 0.1]}
    given |= {"BitsStored": 12, "HighBit": 11, "WindowCenter": 2048, "WindowWidth": 4096}
    write_image(path, mammogram(dot), **given, **attributes)


def test_a_point_of_a_mammogram_is_found_again_in_its_crop(tmp_path: Path, key_file: Path) -> None:
    write_mammogram(tmp_path / "raw" / "a", (40, 100))
    options: dict[str, Any] = {"crop": "breast", "resize": "longest", "size": 64}
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, **options)
    found = picture_of(tmp_path / "out", row)[:, :, 0]
    assert row["dicom_chest_wall"] == "left"
    assert row["width"] < row["height"] == 64
    y, x = np.unravel_index(int(found.argmax()), found.shape)
    # Pixel edges are integers: the dot's centre is at (40.5, 100.5).
    assert abs(40.5 * row["scale_x"] + row["offset_x"] - (x + 0.5)) <= 1
    assert abs(100.5 * row["scale_y"] + row["offset_y"] - (y + 0.5)) <= 1
    # The marker, which was the brightest but for the dot, is gone.
    assert found[:, -6:].max() < 130


def test_boxes_of_a_table_follow_crop_and_resize(tmp_path: Path, key_file: Path) -> None:
    write_mammogram(tmp_path / "raw" / "aa.dicom", (40, 100))
    write_mammogram(tmp_path / "raw" / "bb.dicom", (20, 60), SOPInstanceUID="1.2.8", SeriesInstanceUID="1.2.9")
    (tmp_path / "train.csv").write_text(
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max\n"
        "aa,Mass,3,R10,30,90,51,111\n"
        "bb,No finding,14,R7,,,,\n"
    )
    options: dict[str, Any] = {"crop": "breast", "resize": "longest", "size": 64, "identifiers": "keep"}
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, table=tmp_path / "train.csv", **options)
    by_source = {row["source"]: row for row in rows}
    assert set(by_source) == {"aa.dicom", "bb.dicom"}
    row = by_source["aa.dicom"]
    ((left, top, right, bottom),) = row["boxes"]
    assert row["boxes_original"] == [[30, 90, 51, 111]]
    assert left == pytest.approx(30 * row["scale_x"] + row["offset_x"], abs=1e-3)
    assert bottom == pytest.approx(111 * row["scale_y"] + row["offset_y"], abs=1e-3)
    found = picture_of(tmp_path / "out", row)[:, :, 0]
    y, x = np.unravel_index(int(found.argmax()), found.shape)
    assert ((left + right) / 2, (top + bottom) / 2) == pytest.approx((x + 0.5, y + 0.5), abs=1)
    assert by_source["bb.dicom"]["boxes"] == []


def region(left: int, top: int, right: int, bottom: int) -> Dataset:
    found = Dataset()
    found.RegionSpatialFormat, found.RegionDataType, found.RegionFlags = 1, 1, 0
    found.RegionLocationMinX0, found.RegionLocationMinY0 = left, top
    found.RegionLocationMaxX1, found.RegionLocationMaxY1 = right, bottom
    return found


def test_an_ultrasound_image_is_cut_to_its_region_and_without_one_is_filtered(tmp_path: Path, key_file: Path) -> None:
    picture = np.full((60, 80), 255, np.uint8)
    picture[10:50, 20:60] = np.arange(40)[:, None] + np.arange(40)
    given = {"Modality": "US", "SOPClassUID": ULTRASOUND, "PixelSpacing": None, "ImagePositionPatient": None,
             "ImageOrientationPatient": None}  # fmt: skip
    marked = Sequence([region(20, 10, 59, 49)])
    write_image(tmp_path / "raw" / "marked", picture, SequenceOfUltrasoundRegions=marked, **given)
    write_image(tmp_path / "raw" / "bare", picture, SOPInstanceUID="1.2.3.4", SeriesInstanceUID="1.2.3", **given)
    options: dict[str, Any] = {"burned_in": "crop", "resize": "none", "identifiers": "keep"}
    rows = {row["source"]: row for row in build(tmp_path / "raw", tmp_path / "out", key_file, **options)}
    assert (rows["bare"]["status"], rows["bare"]["reason"]) == ("filtered", "burned_in")
    row = rows["marked"]
    assert np.array_equal(picture_of(tmp_path / "out", row)[:, :, 0], picture[10:50, 20:60])
    # The point (20, 10) of the source is now the corner.
    assert (20 * row["scale_x"] + row["offset_x"], 10 * row["scale_y"] + row["offset_y"]) == (0, 0)
    assert row["dicom_burned_in"] == "unknown"


def test_a_second_window_that_the_header_lacks_is_not_made_up(tmp_path: Path, key_file: Path) -> None:
    values = np.arange(64, dtype=np.int16).reshape(8, 8)
    windows: dict[str, dict[str, Any]] = {
        "one": {"WindowCenter": 40, "WindowWidth": 400},
        "two": {"WindowCenter": [40, 30], "WindowWidth": [400, 20]},
        "none": {"WindowCenter": None, "WindowWidth": None},
        "fancy": {"WindowCenter": [40, 30], "WindowWidth": [400, 20], "VOILUTFunction": "FANCY"},
    }
    for name, given in windows.items():
        write_image(tmp_path / "raw" / name, values, SeriesInstanceUID=f"1.2.{ord(name[0])}", **given)
    options: dict[str, Any] = {"identifiers": "keep", "burned_in": "keep", "resize": "none", "window": "header:2"}
    rows = {row["source"]: row for row in build(tmp_path / "raw", tmp_path / "out", key_file, **options)}
    assert (rows["one"]["status"], rows["one"]["reason"]) == ("failed", "unsupported")
    assert "no_window" in rows["none"]["flags"]
    for name in ("two", "fancy"):
        row = rows[name]
        assert (row["dicom_window_center"], row["dicom_window_width"]) == ([30], [20])
        assert row["dicom_voi_function"] == ["LINEAR"]
        assert ("invalid_window" in row["flags"]) == (name == "fancy")


def test_a_segmentation_is_the_mask_of_its_slices(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    shutil.copytree(corpus / "dicom" / "patients" / "77654033" / "CT2", tmp_path / "raw")
    shutil.copy(corpus / "dicom" / "seg" / "seg_image_ct_binary.dcm", tmp_path / "raw" / "seg")
    seg = pydicom.dcmread(tmp_path / "raw" / "seg")
    wanted: dict[str, NDArray[Any]] = {}
    for frame, groups in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True):
        source = groups.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID
        number = groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber
        wanted[str(source)] = np.maximum(wanted.get(str(source), 0), frame * number)
    options: dict[str, Any] = {"identifiers": "keep", "burned_in": "keep"}
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, resize="none", **options)
    assert len(rows) == 4
    for row in rows:
        mask = mask_of(tmp_path / "out", row)
        assert mask.shape == (row["height"], row["width"])
        expected = wanted.get(row["dicom_sop_uid"], np.zeros(mask.shape, np.uint8))
        assert np.array_equal(mask, expected)
    assert sum(mask.any() for mask in wanted.values()) >= 2
    # A mask follows its image onto the canvas, by nearest neighbour.
    canvas = {"size": "24x16", "resize": "pad"}
    for row in build(tmp_path / "raw", tmp_path / "padded", key_file, **canvas, **options):
        mask = mask_of(tmp_path / "padded", row)
        assert mask.shape == (16, 24)
        expected = wanted.get(row["dicom_sop_uid"], np.zeros((16, 16), np.uint8))
        assert np.array_equal(mask[:, 4:20], expected)
        assert not mask[:, :4].any()
    without = build(tmp_path / "raw", tmp_path / "none", key_file, segmentations=False, **options)
    assert len(without) == 4
    assert "mask.png_size" not in without[0]


def test_a_segmentation_whose_frames_alone_name_images_is_their_mask_too(
    corpus: Path, tmp_path: Path, key_file: Path
) -> None:
    shutil.copytree(corpus / "dicom" / "patients" / "77654033" / "CT2", tmp_path / "raw")
    seg = pydicom.dcmread(corpus / "dicom" / "seg" / "seg_image_ct_binary.dcm")
    seg.save_as(tmp_path / "raw" / "seg")
    options: dict[str, Any] = {"identifiers": "keep", "burned_in": "keep", "resize": "none"}
    before = build(tmp_path / "raw", tmp_path / "before", key_file, **options)
    del seg.ReferencedSeriesSequence, seg.SourceImageSequence
    seg.save_as(tmp_path / "raw" / "seg")
    named = {
        str(derivation.SourceImageSequence[0].ReferencedSOPInstanceUID)
        for group in seg.PerFrameFunctionalGroupsSequence
        for derivation in group.DerivationImageSequence
    }
    after = build(tmp_path / "raw", tmp_path / "after", key_file, **options)
    masked = {row["dicom_sop_uid"]: row for row in after if row["mask.png_size"] is not None}
    assert masked.keys() == named
    for row in before:
        if row["dicom_sop_uid"] in named:
            other = mask_of(tmp_path / "after", masked[row["dicom_sop_uid"]])
            assert np.array_equal(mask_of(tmp_path / "before", row), other)


def test_segmentations_that_become_no_masks_are_told(
    corpus: Path, tmp_path: Path, key_file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(corpus / "dicom" / "seg" / "seg_image_ct_binary.dcm", tmp_path / "seg")
    for unit, told in (
        ("slice", "segmentation objects that refer to no image here: 1 of 1"),
        ("stack", "segmentation objects left out: 1; masks are made for slices and frames, not for a stack"),
    ):
        source = tmp_path / unit
        write_image(source / "a", np.zeros((4, 4), np.int16))
        shutil.copy(tmp_path / "seg", source / "seg")
        shardforge.build(
            source, tmp_path / f"out-{unit}", kind="dicom", key_file=key_file, unit=unit, size=4, workers=1
        )
        assert told in " ".join(capfd.readouterr().err.split())


def test_a_header_that_cannot_be_read_costs_no_worker(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    shutil.copytree(corpus / "dicom" / "patients" / "77654033" / "CT2", tmp_path / "raw")
    shutil.copy(corpus / "dicom" / "seg" / "seg_image_ct_binary.dcm", tmp_path / "raw" / "seg")
    broken = tmp_path / "raw" / "17136"
    data = broken.read_bytes()
    # FrameOfReferenceUID, which masks are placed by, with a value representation that there is none of.
    assert b"\x20\0\x52\0UI" in data
    broken.write_bytes(data.replace(b"\x20\0\x52\0UI", b"\x20\0\x52\0Ui"))
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, identifiers="keep")
    assert [row["status"] for row in rows] == ["success"] * 4
