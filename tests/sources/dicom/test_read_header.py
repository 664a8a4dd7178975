import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset

from shardforge.dicom.ultrasound_crop import UltrasoundRegion
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.header import Acquisition, Header
from shardforge.sources.dicom.read_header import HeaderSettings, read_header
from shardforge.sources.item import SourceFile

SETTINGS = HeaderSettings(max_frames=10_000, max_inflated=2**28)


def header_of(path: Path, how: HeaderSettings = SETTINGS) -> Header:
    with path.open("rb") as file:
        return read_header(file, SourceFile(path.name, path.stat().st_size, 0), how)


def header_of_bytes(data: bytes) -> Header:
    return read_header(io.BytesIO(data), SourceFile("x", len(data), 0), SETTINGS)


def test_corpus_files_have_the_header_facts_the_corpus_states(corpus: Path) -> None:
    rows = [json.loads(line) for line in (corpus / "expected.jsonl").open()]
    checked = 0
    for row in rows:
        if not row["path"].startswith("dicom/"):
            continue
        found, expect = header_of(corpus / row["path"]), row["expect"]
        stated = expect["header"]
        if found.problem in (Reason.NOT_DICOM, Reason.EMPTY):
            assert expect["error"], row["path"]
            continue
        checked += 1
        if "rows" in stated and "error" not in expect:
            assert (found.rows, found.columns, found.samples) == (stated["rows"], stated["cols"], stated["samples"])
            assert found.photometric == stated["photometric"]
            assert found.bits == stated.get("bits_stored", found.bits)
            assert found.frames == max(1, int(stated.get("frames", 1)))
        if "modality" in stated:
            assert found.modality == stated["modality"]
        if expect.get("patient_group"):
            assert found.patient_key == expect["patient_group"]
        if "series_uid" in expect:
            assert (found.series_key, found.study_key) == (expect["series_uid"], expect["study_uid"])
        if "route" in expect:
            assert found.kind == {"seg": "segmentation", "rtdose": "dose"}[expect["route"]]
        if expect.get("skip"):
            words = expect["reason"].split("|")
            if found.problem is Reason.NO_PIXELS:
                assert "no_pixels" in words
            elif found.problem is Reason.NOT_A_PICTURE:
                assert {"not_image", "dicomdir"} & set(words)
            else:
                assert found.rows == 0, row["path"]
    assert checked > 350


def test_spaces_and_nuls_are_no_part_of_a_patient_id_but_case_is(write: Callable[..., Path]) -> None:
    path = write("a", PatientID="XY1 ")
    assert header_of(path).patient_key == "XY1"
    path.write_bytes(path.read_bytes().replace(b"XY1 ", b"XY1\0"))
    assert header_of(path).patient_key == "XY1"
    path.write_bytes(path.read_bytes().replace(b"XY1\0", b" xy1"))
    assert header_of(path).patient_key == "xy1"


def test_without_patient_id_studies_keep_strangers_apart(write: Callable[..., Path]) -> None:
    first = header_of(write("a", PatientID="", StudyInstanceUID="1.2.1"))
    second = header_of(write("b", PatientID=None, StudyInstanceUID="1.2.2"))
    assert (first.patient, second.patient) == ("", "")
    assert (first.patient_key, second.patient_key) == ("1.2.1", "1.2.2")
    nothing = {"PatientID": None, "StudyInstanceUID": None, "SeriesInstanceUID": None}
    alone = header_of(write("c", **nothing, SOPInstanceUID="1.2.7"))
    assert alone.patient_key == alone.series_key == "1.2.7"


def test_a_patient_id_in_another_script_is_read_by_its_character_set(write: Callable[..., Path]) -> None:
    path = write("a", SpecificCharacterSet="ISO_IR 192", PatientID="Müller-7")
    assert header_of(path).patient == "Müller-7"


@pytest.mark.parametrize(
    "syntax",
    [
        pydicom.uid.ImplicitVRLittleEndian,
        pydicom.uid.ExplicitVRBigEndian,
        pydicom.uid.DeflatedExplicitVRLittleEndian,
    ],
)
def test_every_plain_syntax_gives_the_same_values(write: Callable[..., Path], syntax: str) -> None:
    known = {
        "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"],
        "KVP": "120",
        "EchoTime": "4.6",
        "InstanceNumber": 7,
        "DiffusionBValue": 800.0,
        "NumberOfFrames": 3,
        "BitsStored": 9,
    }
    plain = header_of(write("a", **known))
    other = header_of(write("a", **known, TransferSyntaxUID=syntax))
    assert (plain.b_value, plain.instance_number, plain.acquisition.kvp, plain.frames) == (800.0, 7, 120.0, 3)
    for name in Header.__slots__:
        if name not in ("file", "transfer_syntax"):
            assert getattr(other, name) == getattr(plain, name), name


@pytest.mark.parametrize("text", ["1,5", "NaN", "inf", "12 mm", "", "--3", "1e999"])
def test_numbers_that_are_none_are_left_out(write: Callable[..., Path], text: str) -> None:
    path = write("a", SliceThickness="11111")
    data = path.read_bytes()
    assert data.count(b"11111 ") == 1
    path.write_bytes(data.replace(b"11111 ", text.encode().ljust(6)))
    found = header_of(path)
    assert found.slice_thickness is None
    assert found.problem is None


def test_positions_with_the_wrong_number_of_values_are_none(write: Callable[..., Path]) -> None:
    found = header_of(write("a", ImagePositionPatient=[0, 0], ImageOrientationPatient=[1, 0, 0]))
    assert (found.position, found.orientation) == (None, None)


def test_spacing_names_its_source_and_is_never_made_up(write: Callable[..., Path]) -> None:
    def spacing(**values: object) -> tuple[object, object]:
        found = header_of(write("a", **values))
        return found.spacing, found.spacing_source

    both = {"ImagerPixelSpacing": [0.2, 0.2]}
    assert spacing(**both) == ((0.5, 0.25), "pixel_spacing")
    assert spacing(**both, PixelSpacing=None) == ((0.2, 0.2), "imager_pixel_spacing")
    assert spacing(**both, PixelSpacing=[0, 0]) == ((0.2, 0.2), "imager_pixel_spacing")
    assert spacing(PixelSpacing=None, NominalScannedPixelSpacing=[0.1, 0.1])[1] == "nominal_scanned_pixel_spacing"
    assert spacing(PixelSpacing=None) == (None, None)
    region = Dataset()
    region.PhysicalUnitsXDirection = region.PhysicalUnitsYDirection = 3
    region.PhysicalDeltaX, region.PhysicalDeltaY = 0.01, -0.02
    found = spacing(PixelSpacing=None, SequenceOfUltrasoundRegions=[region])
    assert found == ((pytest.approx(0.2), pytest.approx(0.1)), "ultrasound_region"), "centimetres, rows first"


def test_ultrasound_regions_are_read(write: Callable[..., Path]) -> None:
    region = Dataset()
    region.RegionLocationMinX0, region.RegionLocationMinY0 = 10, 20
    region.RegionLocationMaxX1, region.RegionLocationMaxY1 = 300, 200
    region.RegionSpatialFormat, region.RegionDataType = 1, 2
    found = header_of(write("a", SequenceOfUltrasoundRegions=[region]))
    assert found.regions == (UltrasoundRegion(10, 20, 300, 200, 1, 2),)


def test_enhanced_frames_have_the_places_pydicom_reads(corpus: Path) -> None:
    positions = 0
    names = ("eCT_Supplemental.dcm", "made_enhanced_perframe.dcm")
    for path in (corpus / "dicom/multiframe" / name for name in names):
        ds = pydicom.dcmread(path)
        found = header_of(path)
        groups = ds.PerFrameFunctionalGroupsSequence
        assert len(found.places) == found.frames == int(ds.NumberOfFrames)
        for place, group in zip(found.places, groups, strict=True):
            if "PlanePositionSequence" in group:
                assert place.position == tuple(map(float, group.PlanePositionSequence[0].ImagePositionPatient))
            if "PlaneOrientationSequence" in group:
                orientation = group.PlaneOrientationSequence[0].ImageOrientationPatient
                assert place.orientation == tuple(map(float, orientation))
            positions += place.position is not None
    assert positions > 0


def test_shared_groups_serve_frames_without_their_own(write: Callable[..., Path]) -> None:
    def group(**measures: object) -> Dataset:
        item, inner = Dataset(), Dataset()
        for name, value in measures.items():
            setattr(inner, name, value)
        item.PixelMeasuresSequence = [inner]
        return item

    found = header_of(
        write(
            "a",
            NumberOfFrames=3,
            PixelSpacing=None,
            SharedFunctionalGroupsSequence=[group(PixelSpacing=[2, 2], SpacingBetweenSlices=5, SliceThickness=4)],
            PerFrameFunctionalGroupsSequence=[group(PixelSpacing=[3, 3])],
        )
    )
    assert [place.spacing for place in found.places] == [(3, 3), (2, 2), (2, 2)]
    assert (found.spacing, found.spacing_between_slices, found.slice_thickness) == ((2, 2), 5, 4)


def test_segmentations_name_the_instances_they_were_made_on(corpus: Path) -> None:
    path = corpus / "dicom/seg/seg_image_ct_binary.dcm"
    ds = pydicom.dcmread(path)
    found = header_of(path)
    expected = [
        ref.ReferencedSOPInstanceUID for s in ds.ReferencedSeriesSequence for ref in s.ReferencedInstanceSequence
    ]
    assert list(found.referenced) == expected


def test_free_text_leaves_a_judgement_and_no_words(write: Callable[..., Path]) -> None:
    found = header_of(
        write("a", SeriesDescription="ZZNAME Screen Shot", SecondaryCaptureDeviceManufacturer="ZZMAKER")
    )
    assert found.capture_words
    assert found.capture_device
    assert "ZZ" not in repr(found)
    plain = header_of(write("b", SeriesDescription="ZZ axial"))
    assert not plain.capture_words
    assert not plain.capture_device


def test_acquisition_is_numbers_of_a_fixed_list(write: Callable[..., Path]) -> None:
    found = header_of(write("a", KVP="120", Exposure="80", MagneticFieldStrength="1.5", Manufacturer="ACME "))
    assert found.acquisition == Acquisition(kvp=120, exposure=80, field_strength=1.5, manufacturer="ACME")


def test_too_many_frames_are_refused_before_anything_is_made_of_them(write: Callable[..., Path]) -> None:
    found = header_of(write("a", NumberOfFrames=2_000_000_000))
    assert found.problem is Reason.OVER_BUDGET
    assert found.places == ()


def test_dose_is_a_picture_only_when_asked_for(corpus: Path) -> None:
    path = corpus / "dicom/multiframe/rtdose.dcm"
    assert header_of(path).problem is Reason.NOT_A_PICTURE
    assert header_of(path, HeaderSettings(10_000, 2**28, dose=True)).problem is None


def test_a_deflated_dataset_is_inflated_within_bounds(corpus: Path) -> None:
    path = corpus / "dicom/broken/made_deflate_bomb_128MiB.dcm"
    found = header_of(path, HeaderSettings(10_000, 2**20))
    assert found.problem in (None, Reason.OVER_BUDGET)
    assert found.rows in (0, 8192)


@pytest.mark.parametrize("name", ["broken/emri_j2k_too_short.dcm", "broken/made_truncated_native_60pct.dcm"])
def test_pixel_data_that_end_early_are_noted(corpus: Path, name: str) -> None:
    assert header_of(corpus / "dicom" / name).cut
    assert not header_of(corpus / "dicom/multiframe/emri_small_jpeg_2k_lossless.dcm").cut


def test_an_unknown_sop_class_is_an_image_if_it_has_pixels(write: Callable[..., Path]) -> None:
    assert header_of(write("a", SOPClassUID="1.2.3.4.5")).problem is None
    assert header_of(write("b", SOPClassUID="1.2.3.4.5", PixelData=None)).problem is Reason.NO_PIXELS


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), which=st.integers(0, 2**16))
def test_damaged_files_give_headers_never_exceptions(corpus: Path, seed: int, which: int) -> None:
    folders = ("series_made_tilt", "multiframe", "seg", "nonimage", "broken")
    paths = sorted(p for name in folders for p in (corpus / "dicom" / name).iterdir() if p.stat().st_size < 60_000)
    data = bytearray(paths[which % len(paths)].read_bytes())
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 30)):
        if data:
            data[rng.randrange(min(len(data), 4000))] = rng.randrange(256)
    if rng.random() < 0.3:
        del data[rng.randrange(len(data) + 1) :]
    found = header_of_bytes(bytes(data))
    assert found.problem is None or isinstance(found.problem, Reason)
    assert found.frames >= 1
    assert all(np.isfinite(found.position or ()))
