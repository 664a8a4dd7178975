"""What builds promise, for DICOM: the same bytes, patients that stay together and stay put, and honest resuming."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from tests.codecs.dicom.corpus_files import EXPECTED
from tests.dicom_builds import all_rows
from tests.dicom_made import noise, write_image
from tests.pictures import digest_tree

pytestmark = pytest.mark.xdist_group("promises of DICOM builds")

OPTIONS: dict[str, Any] = {
    "kind": "dicom", "format": "png", "window": "header", "split": "train=0.5,val=0.5", "shard_samples": 8,
    "max_errors": "100%", "quiet": True, "workers": 1,
}  # fmt: skip


def write_patients(folder: Path, numbers: range) -> None:
    """Two slices of each patient, files named at random."""
    for patient in numbers:
        for index in range(2):
            write_image(
                folder / f"{(patient * 7919 + index * 104729) % 999983:06d}",
                noise(patient * 2 + index, 8, 8),
                PatientID=f"PAT-{patient:04d}",
                StudyInstanceUID=f"1.2.{patient}",
                SeriesInstanceUID=f"1.2.{patient}.1",
                SOPInstanceUID=f"1.2.{patient}.1.{index}",
                ImagePositionPatient=[0, 0, index],
                WindowCenter=500,
                WindowWidth=3000,
            )


@pytest.fixture(scope="module")
def patients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve patients, and a file that is broken."""
    folder = tmp_path_factory.mktemp("patients") / "raw"
    write_patients(folder, range(12))
    (folder / "broken").write_bytes(b"\0" * 128 + b"DICM")
    return folder


@pytest.fixture(scope="module")
def built(patients: Path, tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Path:
    out = tmp_path_factory.mktemp("built") / "out"
    shardforge.build(patients, out, key_file=key_file, **OPTIONS)
    return out


def splits_of(out: Path) -> dict[str, set[str]]:
    """Patient → splits."""
    found: dict[str, set[str]] = {}
    for row in all_rows(out):
        if row["dicom_patient"] is not None:
            found.setdefault(row["dicom_patient"], set()).add(row["split"])
    return found


def test_any_number_of_workers_gives_the_same_bytes(
    patients: Path, built: Path, key_file: Path, tmp_path: Path
) -> None:
    shardforge.build(patients, tmp_path / "out", key_file=key_file, **{**OPTIONS, "workers": 2})
    assert digest_tree(tmp_path / "out") == digest_tree(built)
    assert len(list(built.glob("*.tar"))) >= 3


def test_the_key_changes_no_tar_and_no_split(patients: Path, built: Path, tmp_path: Path) -> None:
    shardforge.build(patients, tmp_path / "out", key_file=tmp_path / "other.key", **OPTIONS)
    one, two = (digest_tree(out) for out in (built, tmp_path / "out"))
    assert one.keys() == two.keys()
    differing = {name.rpartition(".")[2] for name in one if one[name] != two[name]}
    assert differing == {"parquet", "json"}
    assert [row["split"] for row in all_rows(built)] == [row["split"] for row in all_rows(tmp_path / "out")]


def test_every_patient_is_in_one_split(built: Path) -> None:
    splits = splits_of(built)
    assert len(splits) == 12
    assert all(len(names) == 1 for names in splits.values())
    assert {name for names in splits.values() for name in names} == {"train", "val"}


def test_further_patients_move_none(patients: Path, built: Path, key_file: Path, tmp_path: Path) -> None:
    shutil.copytree(patients, tmp_path / "raw")
    write_patients(tmp_path / "raw", range(12, 20))
    shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, **OPTIONS)
    before, now = splits_of(built), splits_of(tmp_path / "out")
    assert len(now) == 20
    assert {patient: now[patient] for patient in before} == before


def test_a_stratified_split_is_kept_for_further_patients(patients: Path, key_file: Path, tmp_path: Path) -> None:
    options = {**OPTIONS, "split_by": "stratified"}
    shardforge.build(patients, tmp_path / "first", key_file=key_file, **options)
    shutil.copytree(patients, tmp_path / "raw")
    write_patients(tmp_path / "raw", range(12, 15))
    shardforge.build(
        tmp_path / "raw", tmp_path / "second", key_file=key_file, split_from=tmp_path / "first", **options
    )
    before, now = splits_of(tmp_path / "first"), splits_of(tmp_path / "second")
    assert {patient: now[patient] for patient in before} == before
    assert sum(map(len, Manifest.read(tmp_path / "first").groups.values())) >= 12
    with pytest.raises(UsageError, match="another identity key"):
        shardforge.build(
            tmp_path / "raw",
            tmp_path / "third",
            key_file=tmp_path / "other.key",
            split_from=tmp_path / "first",
            **options,
        )


def test_patients_are_told_apart_as_agreed(corpus: Path, key_file: Path, tmp_path: Path) -> None:
    """Padding is not significant, case is, and strangers without an ID are not one patient."""
    options = {**OPTIONS, "split": "train=1", "identifiers": "keep"}
    shardforge.build(corpus / "dicom" / "patients_made", tmp_path / "out", **options)
    expected = {
        name.rpartition("/")[2]: expect["patient_group"]
        for name, expect in EXPECTED.items()
        if name.startswith("dicom/patients_made/")
    }
    groups = {row["source"]: row["group"] for row in all_rows(tmp_path / "out")}
    assert groups.keys() == expected.keys()
    for one in groups:
        for two in groups:
            assert (groups[one] == groups[two]) == (expected[one] == expected[two]), (one, two)


def test_touched_files_are_up_to_date_and_changed_ones_refused(
    patients: Path, built: Path, key_file: Path, tmp_path: Path
) -> None:
    shutil.copytree(patients, tmp_path / "raw")
    shutil.copytree(built, tmp_path / "out")
    for path in (tmp_path / "raw").iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))
    report = shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, **OPTIONS)
    assert report.status == "up to date"
    victim = sorted((tmp_path / "raw").iterdir())[3]
    data = victim.read_bytes()
    victim.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(UsageError, match="has changed") as caught:
        shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, **OPTIONS)
    assert victim.name not in str(caught.value)
    victim.unlink()
    with pytest.raises(UsageError, match="1 removed") as caught:
        shardforge.build(tmp_path / "raw", tmp_path / "out", key_file=key_file, **OPTIONS)
    assert victim.name not in str(caught.value)
    assert digest_tree(tmp_path / "out") == digest_tree(built)


def test_times_of_files_are_recorded_by_the_key(
    patients: Path, key_file: Path, built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shardforge.build(patients, tmp_path / "same", key_file=key_file, **OPTIONS)
    shardforge.build(patients, tmp_path / "other", key_file=tmp_path / "other.key", **OPTIONS)
    one, same, other = (
        json.loads((out / "build.json").read_text())["input_times"]
        for out in (built, tmp_path / "same", tmp_path / "other")
    )
    assert one == same != other
    # Under the same key the times say that nothing has to be compared byte by byte.
    capfd.readouterr()
    again = shardforge.build(patients, tmp_path / "same", key_file=key_file, **{**OPTIONS, "quiet": False})
    told = " ".join(capfd.readouterr().err.split())
    assert again.status == "up to date"
    assert "25 items" in told
    assert "modification times" not in told


def test_a_stopped_build_goes_on_when_more_failures_are_allowed(
    patients: Path, key_file: Path, built: Path, tmp_path: Path
) -> None:
    with pytest.raises(shardforge.ShardforgeError) as caught:
        shardforge.build(patients, tmp_path / "out", key_file=key_file, **{**OPTIONS, "max_errors": 0})
    assert caught.value.exit_code == 4
    # Its plan names the files of the source.
    assert (tmp_path / "out" / ".staging").stat().st_mode & 0o777 == 0o700
    shardforge.build(patients, tmp_path / "out", key_file=key_file, **OPTIONS)
    assert digest_tree(tmp_path / "out") == digest_tree(built)


def test_the_manifest_names_no_machine_and_no_key_file(built: Path, key_file: Path, patients: Path) -> None:
    text = (built / "dataset.json").read_text()
    for word in (str(key_file), key_file.name, str(patients), str(built), "PAT-"):
        assert word not in text
    assert set(json.loads(text)["privacy"]) == {"identifiers", "key_id", "profile"}
