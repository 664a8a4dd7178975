"""Tables as RSNA, VinDr and CheXpert publish them, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shardforge.shards.manifest import Manifest
from tests.built import payload
from tests.dicom_builds import all_rows
from tests.dicom_made import noise, write_image
from tests.pictures import run

pytestmark = pytest.mark.xdist_group("labels of DICOM builds")

RADIOGRAPHY = "1.2.840.10008.5.1.4.1.1.1.1"


@pytest.fixture(scope="module")
def slices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two patients with a study and a series of three slices each: p1/s0 … p2/s2, in order of place."""
    folder = tmp_path_factory.mktemp("slices") / "raw"
    for patient in (1, 2):
        for index in range(3):
            write_image(
                folder / f"p{patient}" / f"s{index}.dcm",
                noise(10 * patient + index, 8, 8),
                PatientID=f"PAT{patient}",
                StudyInstanceUID=f"1.2.{patient}",
                SeriesInstanceUID=f"1.2.{patient}.1",
                SOPInstanceUID=f"1.2.{patient}.1.{index + 1}",
                ImagePositionPatient=[0, 0, index],
                InstanceNumber=9 - index,
            )
    return folder


def build(source: Path, tmp_path: Path, table: str, *options: object, status: int = 0) -> dict[str, dict[str, Any]]:
    """source → row of a build with the table."""
    (tmp_path / "table.csv").write_text(table)
    given: list[object] = ["--kind", "dicom", "--window", "500/3000", "--workers", 1, "--keep-identifiers"]
    given += [] if "--format" in options else ["--format", "png"]
    result = run("build", source, tmp_path / "out", *given, "--table", tmp_path / "table.csv", *options)
    assert result.returncode == status, result.stdout + result.stderr
    return {row["source"]: row for row in all_rows(tmp_path / "out")}


PLACES = [(patient, index) for patient in (1, 2) for index in range(3)]
KEYED = {
    "sop": "SOPInstanceUID,finding\n" + "".join(f"1.2.{p}.1.{i + 1},{'ab'[i % 2]}\n" for p, i in PLACES),
    "series": "SeriesInstanceUID,finding\n1.2.1.1,a\n1.2.2.1,b\n",
    "study": "StudyInstanceUID,finding\n1.2.1,a\n1.2.2,b\n",
    "patient": "PatientID,finding\nPAT1,a\nPAT2,b\n",
    "slice": "patient_id,slice,finding\n" + "".join(f"PAT{p},{i},{'ab'[i % 2]}\n" for p, i in PLACES),
    "path": "path,finding\n" + "".join(f"p{p}/s{i}.dcm,{'ab'[i % 2]}\n" for p, i in PLACES),
}  # fmt: skip


@pytest.mark.parametrize("key", KEYED)
def test_every_kind_of_key_labels_the_right_slices(slices: Path, tmp_path: Path, key: str) -> None:
    rows = build(slices, tmp_path, KEYED[key], "--label", "finding")
    by_slice = key in ("sop", "slice", "path")
    wanted = {f"p{p}/s{i}.dcm": ("ab"[i % 2] if by_slice else "ab"[p - 1]) for p, i in PLACES}
    assert {source: row["label_name"] for source, row in rows.items()} == wanted
    assert Manifest.read(tmp_path / "out").classes == {"a": 0, "b": 1}
    for row in rows.values():
        assert payload(tmp_path / "out", row, "cls") == str(row["label"]).encode()


def test_a_named_key_and_slices_counted_from_one(slices: Path, tmp_path: Path) -> None:
    table = "who,which,finding\n" + "".join(f"PAT{p},{i + 1},{'abc'[i]}\n" for p, i in PLACES)
    options = ("--label", "finding", "--label-key", "slice:who,which", "--first-slice", 1)
    rows = build(slices, tmp_path, table, *options)
    assert {source: row["label_name"] for source, row in rows.items()} == {
        f"p{p}/s{i}.dcm": "abc"[i] for p, i in PLACES
    }


def numbered(*numbers: int) -> str:
    """Slices of both patients; the number of a slice is its label."""
    return "patient_id,slice,finding\n" + "".join(f"PAT{p},{n},s{n}\n" for p in (1, 2) for n in numbers)


def test_slices_counted_from_one_are_refused_until_that_is_said(slices: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(numbered(1, 2, 3))
    given = ("--kind", "dicom", "--keep-identifiers", "--table", tmp_path / "table.csv", "--label", "finding")
    result = run("build", slices, tmp_path / "refused", *given)
    told = " ".join(result.stderr.split())
    assert result.returncode == 2
    assert "counts slices from 1: no row has slice 0" in told
    assert "--first-slice 1" in told
    assert "--first-slice 0" in told
    assert not (tmp_path / "refused").exists()
    rows = build(slices, tmp_path, numbered(1, 2, 3), "--label", "finding", "--first-slice", 1)
    assert {source: row["label_name"] for source, row in rows.items()} == {
        f"p{p}/s{i}.dcm": f"s{i + 1}" for p, i in PLACES
    }


def test_slices_counted_from_one_are_taken_from_zero_if_that_is_said(slices: Path, tmp_path: Path) -> None:
    options = ("--label", "finding", "--first-slice", 0, "--max-errors", 9)
    rows = build(slices, tmp_path, numbered(1, 2, 3), *options, status=1)
    assert {source: row["label_name"] for source, row in rows.items()} == {
        f"p{p}/s{i}.dcm": f"s{i}" if i else None for p, i in PLACES
    }


@pytest.mark.parametrize("numbers", [(1, 2), (2,), (0, 1, 2, 3)])
def test_numbers_that_may_count_from_zero_are_taken_so(
    slices: Path, tmp_path: Path, numbers: tuple[int, ...]
) -> None:
    options = ("--label", "finding", "--max-errors", 9)
    rows = build(slices, tmp_path, numbered(*numbers), *options, status=0 if 0 in numbers else 1)
    assert {source: row["label_name"] for source, row in rows.items()} == {
        f"p{p}/s{i}.dcm": f"s{i}" if i in numbers else None for p, i in PLACES
    }


def test_one_patient_whose_numbers_fit_both_ways_leaves_a_note(slices: Path, tmp_path: Path) -> None:
    table = "patient_id,slice,finding\nPAT1,1,a\nPAT1,2,a\nPAT1,3,b\nPAT2,1,a\nPAT2,2,b\nelsewhere,9,a\n"
    (tmp_path / "table.csv").write_text(table)
    given = ("--kind", "dicom", "--table", tmp_path / "table.csv", "--label", "finding", "--dry-run")
    result = run("build", slices, tmp_path / "out", *given, "--key-file", tmp_path / "key")
    assert result.returncode == 0, result.stderr
    told = " ".join(result.stderr.split())
    assert "the highest number of 1 of 2 patients is their number of slices" in told
    assert "give --first-slice 1" in told


def test_slices_that_the_table_leaves_out_fail(slices: Path, tmp_path: Path) -> None:
    rows = build(
        slices, tmp_path, "PatientID,finding\nPAT1,a\nnobody,b\n", "--label", "finding", "--max-errors", 9, status=1
    )
    assert {row["reason"] for source, row in rows.items() if source.startswith("p2")} == {"missing_label"}
    assert {row["status"] for source, row in rows.items() if source.startswith("p1")} == {"success"}


def test_a_volume_takes_the_label_of_its_series(slices: Path, tmp_path: Path) -> None:
    table = "SeriesInstanceUID,finding\n1.2.1.1,a\n1.2.2.1,b\n"
    rows = build(slices, tmp_path, table, "--label", "finding", "--unit", "volume", "--format", "npy")
    assert {source: row["label_name"] for source, row in rows.items()} == {"p1/s0.dcm": "a", "p2/s0.dcm": "b"}


def test_a_key_that_is_none_is_a_usage_error(slices: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(KEYED["patient"])
    result = run("build", slices, tmp_path / "out", "--table", tmp_path / "table.csv", "--label-key", "mrn")
    assert result.returncode == 2
    assert "'mrn' is none of sop, series, study, patient, slice, path" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.fixture(scope="module")
def radiographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("radiographs") / "raw"
    for number, name in enumerate(("train/aa.dicom", "train/bb.dicom", "train/cc.dicom")):
        write_image(
            folder / name,
            noise(number, 40, 60),
            Modality="DX",
            SOPClassUID=RADIOGRAPHY,
            SOPInstanceUID=f"1.5.{number}",
            SeriesInstanceUID=f"1.6.{number}",
            StudyInstanceUID=f"1.7.{number}",
            PatientID=f"X{number}",
            PixelSpacing=[1, 1],
        )
    return folder


def test_vindr_boxes_and_classes(radiographs: Path, tmp_path: Path) -> None:
    table = """image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max
aa,No finding,14,R11,,,,
bb,Cardiomegaly,3,R10,10,20,30,40
bb,Nodule,0,R8,0,0,6,4
cc,Nodule,0,R8,2,2,4,4
"""
    rows = build(radiographs, tmp_path, table, "--size", 20)
    assert rows["train/bb.dicom"]["label_name"] == ["Cardiomegaly", "Nodule"]
    assert rows["train/aa.dicom"]["label_name"] == ["No finding"]
    # 60 × 40 becomes 30 × 20.
    assert rows["train/bb.dicom"]["boxes"] == [[5, 10, 15, 20], [0, 0, 3, 2]]
    content = json.loads(payload(tmp_path / "out", rows["train/bb.dicom"], "json"))
    assert content["boxes"] == [[5, 10, 15, 20], [0, 0, 3, 2]]
    assert rows["train/aa.dicom"]["boxes"] == []


def test_rsna_rows_of_one_class_each(radiographs: Path, tmp_path: Path) -> None:
    table = "ID,Label\n" + "".join(
        f"{name}_{finding},{int(finding in found)}\n"
        for name, found in (("aa", ()), ("bb", ("subdural", "any")), ("cc", ("epidural", "any")))
        for finding in ("epidural", "subdural", "any")
    )
    rows = build(radiographs, tmp_path, table)
    assert rows["train/aa.dicom"]["label_name"] == []
    assert rows["train/bb.dicom"]["label_name"] == ["any", "subdural"]
    assert rows["train/cc.dicom"]["label_name"] == ["any", "epidural"]
    assert Manifest.read(tmp_path / "out").label.kind == "multi"


@pytest.mark.parametrize("uncertain", ["ignore", "positive"])
def test_chexpert_findings_by_path(radiographs: Path, tmp_path: Path, uncertain: str) -> None:
    table = """Path,Sex,Age,No Finding,Cardiomegaly,Edema
CheXpert-v1.0-small/train/aa.jpg,Female,68,1.0,,
CheXpert-v1.0-small/train/bb.jpg,Female,87,,-1.0,1.0
CheXpert-v1.0-small/train/cc.jpg,Male,83,,1.0,0.0
"""
    labels = ("--label", "No Finding", "--label", "Cardiomegaly", "--label", "Edema")
    rows = build(radiographs, tmp_path, table, *labels, "--uncertain", uncertain)
    assert rows["train/aa.dicom"]["label_name"] == ["No Finding"]
    doubtful = ["Cardiomegaly", "Edema"] if uncertain == "positive" else ["Edema"]
    assert rows["train/bb.dicom"]["label_name"] == doubtful
    # What counts as positive is not uncertain any more.
    assert rows["train/bb.dicom"]["label_uncertain"] == ([] if uncertain == "positive" else ["Cardiomegaly"])
    assert rows["train/cc.dicom"]["label_name"] == ["Cardiomegaly"]
    assert rows["train/cc.dicom"]["Age"] == 83
