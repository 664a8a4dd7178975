import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from shardforge.errors import UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.columns import COLUMN_TYPES, DATES, FREE_TEXT, IDENTIFIERS
from shardforge.sources.dicom.options import DicomSourceOptions
from shardforge.sources.dicom.scan import DicomScan, scan_dicom
from shardforge.sources.dicom.zips import ZipLimits

CORONAL = [1, 0, 0, 0, 0, -1]


def scan(root: Path, **options: object) -> DicomScan:
    return scan_dicom(root, DicomSourceOptions(**options), lambda _: None)


def unknown(found: DicomScan) -> dict[str, str]:
    return {thing.path: thing.why for thing in found.unknown}


@pytest.mark.parametrize("unit", ["slice", "frame", "stack", "volume"])
def test_every_file_of_the_corpus_is_accounted_for(corpus: Path, unit: str) -> None:
    root = corpus / "dicom"
    found = scan(root, unit=unit)
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    in_items = {file.path for item in found.items for file in item.files.values()}
    segmentations = {header.file.path for header in found.segmentations}
    assert in_items | segmentations | set(unknown(found)) == files
    assert not in_items & segmentations
    assert set(unknown(found)) == {"broken/zipMR.gz"}
    assert [(item.source, item.frame) for item in found.items] == sorted(
        (item.source, item.frame) for item in found.items
    )
    assert len({item.name for item in found.items}) == len(found.items)
    for item in found.items:
        assert set(item.columns) <= set(found.columns)
        assert item.files["image"].path in found.headers
    for name, kind in found.columns.items():
        pa.array([item.columns.get(name) for item in found.items], kind)


def test_what_the_corpus_calls_no_image_is_skipped_and_what_is_damaged_fails(corpus: Path) -> None:
    found = {item.source: item for item in scan(corpus / "dicom").items}
    judged = 0
    for row in map(json.loads, (corpus / "expected.jsonl").open()):
        name, expect = row["path"].removeprefix("dicom/"), row["expect"]
        if not row["path"].startswith("dicom/") or name not in found or expect.get("error"):
            continue
        if expect.get("skip"):
            # A file with pixels but no size is for the decoder to refuse.
            wanted = (Reason.NOT_A_PICTURE, Reason.NO_PIXELS)
            assert found[name].problem in wanted or (found[name].problem is None and "bad_header" in expect["reason"])
        elif "route" not in expect:
            judged += 1
            assert found[name].problem in (None, Reason.DUPLICATE_SLICE), name
    assert judged > 300


def test_slices_stand_in_their_series_by_position(write_series: Callable[..., list[Path]], source: Path) -> None:
    write_series([0, 2.5, 5, 7.5])
    found = scan(source)
    by_index = sorted(found.items, key=lambda item: item.columns["dicom_slice_index"])
    assert [item.source for item in by_index] == ["004", "003", "002", "001"]
    assert [item.columns["dicom_slice_position_mm"] for item in by_index] == [0, 2.5, 5, 7.5]
    one = by_index[0].columns
    assert (one["dicom_spacing_row"], one["dicom_spacing_col"], one["dicom_spacing_slice"]) == (0.5, 0.25, 2.5)
    assert (one["dicom_slice_count"], one["dicom_series_findings"]) == (4, [])
    assert found.layout == "DICOM tree, slices"
    assert found.notes[0] == "4 image files, 1 patient, 1 study, 1 series, 1 group of slices"


def test_stacks_have_their_neighbours_and_repeat_the_edges(
    write_series: Callable[..., list[Path]], source: Path
) -> None:
    write_series([0, 1, 2])
    items = sorted(scan(source, unit="stack").items, key=lambda item: item.columns["dicom_slice_index"])
    assert [{field: file.path for field, file in sorted(item.files.items())} for item in items] == [
        {"image": "003", "slice.+1": "002", "slice.-1": "003"},
        {"image": "002", "slice.+1": "001", "slice.-1": "003"},
        {"image": "001", "slice.+1": "001", "slice.-1": "002"},
    ]
    wide = scan(source, unit="stack", neighbours=2).items[1]
    assert [wide.files[f"slice.{k}"].path for k in ("-2", "-1", "+1", "+2")] == ["003", "003", "001", "001"]
    assert wide.columns["dicom_frames"] == [0] * 5


def test_a_volume_is_one_item_in_ascending_order(write_series: Callable[..., list[Path]], source: Path) -> None:
    write_series([0, 1, 2], "a/")
    write_series([0, 1], "b/", SeriesInstanceUID="1.2.4", PatientID="Q")
    first, second = scan(source, unit="volume").items
    assert [first.files[name].path for name in ("image", "slice.001", "slice.002")] == ["a/003", "a/002", "a/001"]
    assert first.columns["dicom_slice_count"] == 3
    assert first.columns["dicom_frames"] == [0, 0, 0]
    assert (first.group, second.group) == ("P", "Q")


@pytest.mark.parametrize(
    ("positions", "more", "words"),
    [
        ([0, 1, 2, 4, 5], {}, "gaps"),
        ([0, 1, 2.4, 3], {}, "irregular"),
        ([0, 0, 1], {}, "same_position"),
    ],
)
def test_what_is_no_regular_grid_fails_or_is_kept_by_policy(
    write_series: Callable[..., list[Path]], source: Path, positions: list[float], more: dict[str, object], words: str
) -> None:
    write_series(positions, **more)
    for unit in ("stack", "volume"):
        failing = scan(source, unit=unit).items
        assert {item.problem for item in failing} == {Reason.BAD_GEOMETRY}
        assert words in failing[0].detail
        assert {item.problem for item in scan(source, unit=unit, irregular="keep").items} == {None}
    assert {item.problem for item in scan(source).items} == {None}, "slices stand for themselves"
    assert words in scan(source).items[0].columns["dicom_series_findings"]


def test_tilted_volumes_fail(corpus: Path) -> None:
    (item,) = scan(corpus / "dicom/series_made_tilt", unit="volume").items
    assert (item.problem, item.detail) == (Reason.BAD_GEOMETRY, "tilted")


def test_duplicates_are_filtered_and_the_rest_makes_the_volume(corpus: Path) -> None:
    root = corpus / "dicom/series_made_dup_localizer"
    found = scan(root)
    assert {item.source: item.detail for item in found.items if item.problem is Reason.DUPLICATE_SLICE} == {
        "f90_same_pixels.dcm": "the same slice as f00.dcm",
        "f91_same_sop_uid.dcm": "the same slice as f01.dcm",
    }
    volumes = [item for item in scan(root, unit="volume", irregular="keep").items if item.problem is None]
    assert {item.source: len(item.files) for item in volumes} == {
        "f03.dcm": 8,
        "f92_same_pos_other_pixels.dcm": 1,
    }
    alone = [item.source for item in scan(root, unit="volume").items if item.problem is Reason.SINGLE_SLICE]
    assert alone == ["f93_localizer.dcm"]


def test_copies_of_an_instance_with_other_pixels_are_kept_and_the_same_pixels_are_not(
    write: Callable[..., Path], source: Path
) -> None:
    for name, value in {"a": 1, "b": 2, "c": 1}.items():
        write(f"placed/{name}", PixelData=bytes([value, 0]) * 16)
        write(
            f"unplaced/{name}", PixelData=bytes([value, 0]) * 16, SeriesInstanceUID="1.2.3.7",
            ImagePositionPatient=None, ImageOrientationPatient=None,
        )  # fmt: skip
    # Without a position only what has the same UID is compared.
    write("unplaced/d", PixelData=b"\1\0" * 16, SeriesInstanceUID="1.2.3.7", SOPInstanceUID="1.2.3.8",
          ImagePositionPatient=None, ImageOrientationPatient=None)  # fmt: skip
    for unit in ("slice", "stack"):
        found = scan(source, unit=unit, irregular="keep")
        items = {item.source: item for item in found.items}
        assert {name: item.same_as for name, item in items.items() if item.problem is not None} == {
            "placed/c": "placed/a",
            "unplaced/c": "unplaced/a",
        }
        assert len(items) == 7
        assert all("same_uid" in items[name].columns["dicom_series_findings"] for name in ("placed/b", "unplaced/b"))
        assert sorted(group.same_uid for group in found.findings) == [1, 1]


def test_of_two_copies_the_whole_one_has_the_place_in_a_volume(
    write_series: Callable[..., list[Path]], write: Callable[..., Path], source: Path
) -> None:
    # In order of z: 003, 002, 001.
    write_series([0.0, 1.0, 2.0])
    for name, z, uid in (("000", 0.0, "1.2.3.9.0"), ("009", 1.0, "1.2.3.9.1")):
        cut = write(name, ImagePositionPatient=[0, 0, z], SOPInstanceUID=uid, InstanceNumber=0)
        cut.write_bytes(cut.read_bytes()[:-10])
    (item,) = scan(source, unit="volume").items
    assert item.problem is None
    assert {name: file.path for name, file in item.files.items()} == {
        "image": "003",
        "slice.001": "002",
        "slice.002": "001",
        "spare.000.1": "000",
        "spare.001.1": "009",
    }
    assert item.columns["dicom_series_findings"] == ["same_uid"]


def test_frames_are_items_whatever_the_unit_is_called(write: Callable[..., Path], source: Path) -> None:
    write("cine", NumberOfFrames=3, PixelData=bytes(96))
    write("single", SOPInstanceUID="1.2.8", SeriesInstanceUID="1.2.7")
    for unit in ("slice", "frame"):
        items = scan(source, unit=unit).items
        assert [(item.source, item.frame, item.frames) for item in items] == [
            ("cine", 0, 3),
            ("cine", 1, 3),
            ("cine", 2, 3),
            ("single", 0, 1),
        ]
    assert scan(source).items[0].columns["dicom_series_findings"] == ["irregular", "no_positions"]


def test_a_volume_of_frames_of_one_file_names_it_once(corpus: Path, source: Path) -> None:
    shutil.copy(corpus / "dicom/multiframe/eCT_Supplemental.dcm", source / "e")
    for item in scan(source, unit="volume", irregular="keep").items:
        assert list(item.files) == ["image"]
        assert len(item.columns["dicom_frames"]) == item.columns["dicom_slice_count"]
    assert sorted(
        frame for item in scan(source, unit="volume").items for frame in item.columns["dicom_frames"]
    ) == list(range(scan(source).items[0].frames))


def test_zip_archives_are_read_in_place_like_folders(corpus: Path, source: Path) -> None:
    root = corpus / "dicom/series_made_shuffled"
    (source / "sub").mkdir()
    with zipfile.ZipFile(source / "sub/study.ZIP.bak", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.iterdir()):
            archive.write(path, f"inner/{path.stem}")
        archive.writestr("inner/notes.txt", "a text")
        archive.write(root / "f00.dcm", "../f00.dcm")
        with zipfile.ZipFile(source / "nested", "w") as nested:
            nested.write(root / "f00.dcm", "f00")
        archive.write(source / "nested", "inner/nested.zip")
    (source / "nested").unlink()
    found = scan(source)
    plain = scan(root)
    assert [item.source for item in found.items] == [
        f"sub/study.ZIP.bak//inner/{item.source.removesuffix('.dcm')}" for item in plain.items
    ]
    assert [item.columns for item in found.items] == [item.columns for item in plain.items]
    assert unknown(found) == {
        "sub/study.ZIP.bak//../f00.dcm": "unsafe name in an archive (not opened)",
        "sub/study.ZIP.bak//inner/nested.zip": "archive inside an archive (not opened)",
        "sub/study.ZIP.bak//inner/notes.txt": "text",
    }
    assert "1 zip archive read in place" in found.notes
    (volume,) = scan(source, unit="volume").items
    assert len(volume.files) == 12


def test_archives_that_cannot_be_trusted_are_failed_items(write: Callable[..., Path], source: Path) -> None:
    write("a")
    with zipfile.ZipFile(source / "b", "w") as archive:
        archive.write(source / "a", "a")
        archive.writestr("b", b"b")
    (source / "c").write_bytes((source / "b").read_bytes()[:-30])
    found = scan(source, zips=ZipLimits(members=1))
    assert {item.source: item.problem for item in found.items} == {
        "a": None,
        "b": Reason.OVER_BUDGET,
        "c": Reason.CORRUPT,
    }


def test_archives_without_dicom_are_one_unknown_file(write: Callable[..., Path], source: Path) -> None:
    write("a")
    with zipfile.ZipFile(source / "b.docx", "w") as archive:
        for name in ("x", "y", ".z"):
            archive.writestr(name, name)
    assert unknown(scan(source)) == {"b.docx": "zip archive without DICOM files"}


def test_content_decides_what_is_dicom_never_the_name(write: Callable[..., Path], corpus: Path, source: Path) -> None:
    write("a.jpg")
    write("b/c.d/e", SOPInstanceUID="1.5", ImagePositionPatient=[0, 0, 9])
    shutil.copy(next((corpus / "images/exif").glob("*.jpg")), source / "x.jpg")
    shutil.copy(next((corpus / "images/exif").glob("*.jpg")), source / "y.dcm")
    (source / "report.pdf").write_bytes(b"%PDF-1.4")
    (source / "notes").write_text("text")
    (source / "blob").write_bytes(bytes(range(256)))
    (source / "nothing").write_bytes(b"")
    (source / "nothing.dcm").write_bytes(b"")
    (source / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (source / "._a.dcm").write_bytes(b"\0\5\x16\7")
    (source / ".cache").mkdir()
    shutil.copy(source / "a.jpg", source / ".cache/a")
    os.mkfifo(source / "pipe")
    found = scan(source)
    assert {item.source: item.problem for item in found.items} == {
        "a.jpg": None,
        "b/c.d/e": None,
        "y.dcm": Reason.NOT_DICOM,
        "nothing.dcm": Reason.EMPTY,
    }
    assert unknown(found) == {
        ".DS_Store": "hidden",
        "._a.dcm": "hidden",
        ".cache/a": "in a hidden folder",
        "blob": "not a DICOM file",
        "notes": "text",
        "nothing": "empty",
        "pipe": "not a regular file",
        "report.pdf": "PDF",
        "x.jpg": "jpeg picture",
    }


def test_a_dicomdir_is_never_followed(corpus: Path, source: Path) -> None:
    root = source / "inner"
    root.mkdir()
    shutil.copy(corpus / "dicom/broken/made_DICOMDIR_traversal", root / "DICOMDIR")
    shutil.copy(corpus / "dicom/ts/MR_small.dcm", source / "OUTSIDE")
    found = scan(root)
    assert [(item.source, item.problem) for item in found.items] == [("DICOMDIR", Reason.NOT_A_PICTURE)]


def test_groups_are_patients_studies_series_or_none(corpus: Path) -> None:
    root = corpus / "dicom/patients"
    counts = {by: len({item.group for item in scan(root, group_by=by).items if item.problem is None})
              for by in ("patient", "study", "series", "none")}  # fmt: skip
    rows = [json.loads(line)["expect"] for line in (corpus / "expected.jsonl").open() if '"dicom/patients/' in line]
    rows = [row for row in rows if "series_uid" in row]
    assert counts == {
        "patient": len({row["patient_group"] for row in rows}),
        "study": len({row["study_uid"] for row in rows}),
        "series": len({row["series_uid"] for row in rows}),
        "none": 1,
    }


def test_segmentations_are_kept_aside(corpus: Path) -> None:
    root = corpus / "dicom/seg"
    found = scan(root)
    assert len(found.segmentations) == len(list(root.iterdir()))
    assert found.items == []


def test_columns_hold_known_words_only(write: Callable[..., Path], source: Path) -> None:
    write(
        "a",
        Modality="ZZMOD",
        BodyPartExamined="ZZBODY",
        ImageType=["ORIGINAL", "ZZTYPE", "axial"],
        Laterality="L",
        ViewPosition="ZZ",
        PresentationIntentType="FOR PROCESSING",
        StudyDate="20240229",
        SeriesDate="ZZ",
        StudyDescription="ZZ",
        PatientName="ZZ^ZZ",
        ProtocolName="ZZ",
    )
    (item,) = scan(source).items
    columns = item.columns
    assert columns["dicom_image_type"] == ["ORIGINAL", "AXIAL"]
    assert columns["dicom_laterality"] == "L"
    assert columns["dicom_presentation_intent"] == "FOR PROCESSING"
    assert (columns["dicom_study_date"], columns["dicom_series_date"]) == ("2024-02-29", None)
    assert "ZZ" not in repr(columns)
    assert set(IDENTIFIERS) | set(DATES) | set(FREE_TEXT) <= set(COLUMN_TYPES)
    assert [columns[name] for name in IDENTIFIERS] == ["P", "1.2.3.1", "1.2.3.2", "1.2.3.9"]
    assert set(columns) == set(COLUMN_TYPES) - {"dicom_frames"}


def test_planted_identifiers_reach_identifier_columns_at_most(corpus: Path, source: Path) -> None:
    shutil.copy(corpus / "dicom/phi/made_phi_fictional.dcm", source / "x")
    found = scan(source)
    rows = map(json.loads, (corpus / "expected.jsonl").open())
    (forbidden,) = (
        row["expect"]["forbidden_strings"] for row in rows if row["path"] == "dicom/phi/made_phi_fictional.dcm"
    )
    (item,) = found.items
    public = {name: value for name, value in item.columns.items() if name not in (*IDENTIFIERS, *DATES, *FREE_TEXT)}
    told = repr((public, found.notes, found.layout, item.detail, found.unknown))
    assert [text for text in forbidden if text in told] == []


def test_symbolic_links_are_followed_inside_the_source_only(write: Callable[..., Path], source: Path) -> None:
    path = write("real/a")
    outside = source.parent / "outside"
    shutil.copy(path, outside)
    (source / "out").symlink_to(outside)
    found = scan(source)
    assert [item.source for item in found.items] == ["real/a"]
    assert unknown(found) == {"out": "symbolic link out of the source folder"}
    assert len(scan(source, follow_symlinks=True).items) == 2


def test_a_folder_without_dicom_files_is_a_mistake(source: Path, tmp_path: Path) -> None:
    (source / "a.txt").write_text("x")
    with pytest.raises(UsageError, match="no DICOM file found: it holds 1 file"):
        scan(source)
    with pytest.raises(UsageError, match="no such folder"):
        scan(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="at least one neighbour"):
        scan(source, unit="stack", neighbours=0)


def test_the_scan_does_not_depend_on_the_number_of_workers(corpus: Path, tmp_path: Path) -> None:
    for number in range(180):
        shutil.copytree(corpus / "dicom/series_made_gap", tmp_path / f"{number}")
    assert scan(tmp_path, workers=2).items == scan(tmp_path, workers=1).items


def test_members_that_are_not_opened_are_no_missing_dicom_files(corpus: Path, source: Path) -> None:
    data = (corpus / "dicom" / "series_ct" / "IMG0003.dcm").read_bytes()
    (source / "f.dcm").write_bytes(data)
    with zipfile.ZipFile(source / "inner.zip", "w") as inner:
        inner.writestr("x.dcm", data)
    within = (source / "inner.zip").read_bytes()
    (source / "inner.zip").unlink()
    unsafe = ["../../x.dcm", "/etc/abs.dcm", "C:\\x.dcm"]
    with zipfile.ZipFile(source / "unsafe.zip", "w") as archive:
        for name in unsafe:
            archive.writestr(name, data)
    with zipfile.ZipFile(source / "nested.zip", "w") as archive:
        archive.writestr("inner.zip", within)
        archive.writestr("note.txt", b"nothing")
    found = scan(source)
    assert [item.source for item in found.items] == ["f.dcm"]
    closed = "zip archive without DICOM files among the members opened"
    assert unknown(found) == {
        **{f"unsafe.zip//{name}": "unsafe name in an archive (not opened)" for name in unsafe},
        "unsafe.zip": closed,
        "nested.zip//inner.zip": "archive inside an archive (not opened)",
        "nested.zip": closed,
    }
