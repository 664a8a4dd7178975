"""Identifiers planted in every place of DICOM files, and whole builds of them: none comes through."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pydicom
import pytest

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from tests.codecs.dicom.corpus_files import EXPECTED
from tests.dicom_builds import all_rows
from tests.dicom_leaks import find_markers
from tests.dicom_planted import STEM, UID_STEM, Planted, plant_patients
from tests.pictures import environment, run

pytestmark = pytest.mark.xdist_group("planted identifiers")

PATIENTS, SLICES = 2, 2
ALIKE = {"max_errors": "100%", "workers": 1, "format": "png", "window": "40/400"}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Patients who each have slices, a doubtful image, one without pixels, one cut short, a text, and a copy of a
    slice."""
    found = plant_patients(tmp_path_factory.mktemp("planted") / "source", PATIENTS, SLICES)
    for number, path in enumerate(found.pictures[::SLICES]):
        shutil.copy(path, path.with_name(f"{STEM}900000{number}_again.dcm"))
    return found


@pytest.fixture(scope="module")
def table(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows keyed by PatientID with harmless columns, and one of a patient that the source does not have."""
    path = tmp_path_factory.mktemp("table") / "labels.csv"
    patients = [pydicom.dcmread(picture).PatientID for picture in planted.pictures[::SLICES]]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["PatientID", "finding", "score"])
        for number, patient in enumerate([*patients, f"{STEM}9999999"]):
            writer.writerow([patient, ("calm", "not calm")[number % 2], number])
    return path


@pytest.fixture(scope="module")
def instances(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows keyed by SOPInstanceUID."""
    path = tmp_path_factory.mktemp("table") / "instances.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["SOPInstanceUID", "finding"])
        for number, picture in enumerate(planted.pictures):
            writer.writerow([pydicom.dcmread(picture).SOPInstanceUID, ("calm", "not calm")[number % 2]])
    return path


def said(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    """Puts what was printed where it is searched as well."""
    printed = capfd.readouterr()
    (folder / "said.txt").write_text(printed.out + printed.err)


VARIANTS: dict[str, dict[str, Any]] = {
    "jpg": {"format": "jpg"},
    "frames, 16 bits": {"unit": "frame", "depth": 16, "window": "header"},
    "values": {"format": "npy", "window": "none", "dedup": "bytes", "duplicates": "first"},
    "keys by stem": {"keys": "stem", "dedup": "bytes"},
    "stacks": {"unit": "stack", "irregular": "keep"},
    "volumes": {"unit": "volume", "format": "npy", "window": "none", "irregular": "keep"},
    "burned-in text kept": {"burned_in": "keep", "group_by": "series", "truncated": "salvage"},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_planted_identifier_comes_through(
    planted: Planted, key_file: Path, variant: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    options: Any = {**ALIKE, **VARIANTS[variant]}
    shardforge.build(planted.folder, tmp_path / "out", key_file=key_file, kind="dicom", **options)
    said(capfd, tmp_path)
    assert find_markers(tmp_path, planted) == []
    assert any(row["status"] == "success" for row in all_rows(tmp_path / "out"))


@pytest.mark.parametrize("by", ["patients", "instances"])
def test_tables_that_name_patients_or_instances_give_none_away(
    planted: Planted,
    table: Path,
    instances: Path,
    key_file: Path,
    by: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    options: Any = {**ALIKE, "split": "train=0.5,val=0.5", "split_by": "stratified", "label": "finding"}
    given = table if by == "patients" else instances
    options |= {"columns": "score"} if by == "patients" else {}
    shardforge.build(planted.folder, tmp_path / "out", key_file=key_file, kind="dicom", table=given, **options)
    said(capfd, tmp_path)
    assert find_markers(tmp_path, planted) == []
    manifest = Manifest.read(tmp_path / "out")
    assert set(manifest.classes) == {"calm", "not calm"}
    assert sum(map(len, manifest.groups.values())) >= PATIENTS
    if by == "patients":
        assert {row["score"] for row in all_rows(tmp_path / "out")} >= set(range(PATIENTS))


@pytest.mark.parametrize("asked", [{"keys": "column:PatientID"}, {"label": "PatientID"}, {"caption": "PatientID"}])
def test_columns_that_identify_patients_are_refused_where_they_would_be_stored(
    planted: Planted, table: Path, key_file: Path, asked: dict[str, Any], tmp_path: Path
) -> None:
    options: Any = {**ALIKE, "quiet": True, **asked}
    with pytest.raises(UsageError, match="'PatientID' identifies patients"):
        shardforge.build(planted.folder, tmp_path / "out", kind="dicom", table=table, key_file=key_file, **options)
    assert not (tmp_path / "out").exists()


def test_columns_that_nobody_names_serve_conditions_and_stay_out(
    planted: Planted, table: Path, key_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Anything may stand in a table; what a condition says may name somebody as well."""
    word = next(iter(planted.words))
    lines = table.read_text().splitlines()
    wide = tmp_path / "wide.csv"
    wide.write_text("\n".join([f"{lines[0]},who", *(f"{line},{word}" for line in lines[1:])]) + "\n")
    where = f"who = '{word}' or `group` = '{word}'"
    options: Any = {**ALIKE, "label": "finding", "where": where}
    out = tmp_path / "built"
    shardforge.build(planted.folder, out, key_file=key_file, kind="dicom", table=wide, **options)
    wide.unlink()
    said(capfd, tmp_path)
    assert find_markers(tmp_path, planted) == []
    assert "columns of the table that stay out of the dataset: score, who;" in (tmp_path / "said.txt").read_text()
    rows = all_rows(out)
    assert any(row["status"] == "success" for row in rows)
    assert not {"who", "score"} & set(rows[0])
    recipe = Manifest.read(out).recipe
    assert recipe["filters"]["where"].startswith("hidden: ")
    assert not recipe["table"].endswith(".csv")
    harmless: Any = {**ALIKE, "where": "dicom_modality = 'CT'"}
    shardforge.build(planted.folder, tmp_path / "plain", key_file=key_file, kind="dicom", quiet=True, **harmless)
    assert Manifest.read(tmp_path / "plain").recipe["filters"]["where"] == "dicom_modality = 'CT'"


def test_archives_give_nothing_away(
    planted: Planted, key_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path.parent / f"{tmp_path.name}-zipped" / "source"
    source.mkdir(parents=True)
    with zipfile.ZipFile(source / f"{STEM}8000001.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(planted.folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(planted.folder))
    options: Any = {**ALIKE, "dedup": "bytes"}
    report = shardforge.build(source, tmp_path / "out", key_file=key_file, kind="dicom", **options)
    said(capfd, tmp_path)
    assert report.samples == PATIENTS * SLICES
    assert find_markers(tmp_path, planted) == []


def test_the_command_says_no_name_whatever_fails(planted: Planted, key_file: Path, tmp_path: Path) -> None:
    options = ("--kind", "dicom", "--key-file", key_file, "--max-errors", "100%", "--workers", 2, "--format", "png")
    outputs = [run("build", planted.folder, tmp_path / "out", *options, "--json")]
    assert outputs[0].returncode == 1
    rows = all_rows(tmp_path / "out")
    assert {row["status"] for row in rows} == {"success", "failed", "filtered", "skipped"}
    assert {row["reason"] for row in rows} >= {"burned_in", "duplicate_slice", "not_dicom", "no_pixels", None}
    outputs.append(run("build", planted.folder, tmp_path / "out", *options))  # up to date
    outputs.append(run("build", planted.folder, tmp_path / "out", *options, "--size", 8))  # refused
    outputs.append(run("inspect", tmp_path / "out"))
    outputs.append(run("inspect", tmp_path / "out", "--verify"))
    outputs.append(run("inspect", tmp_path / "out", "--sample", "0"))
    assert [output.returncode for output in outputs] == [1, 0, 2, 0, 0, 0]
    (tmp_path / "said.txt").write_text("\n".join(output.stdout + output.stderr for output in outputs))
    assert find_markers(tmp_path, planted) == []


def test_a_build_that_stops_says_no_name(planted: Planted, key_file: Path, tmp_path: Path) -> None:
    result = run(
        "build", planted.folder, tmp_path / "out", "--kind", "dicom", "--key-file", key_file, "--max-errors", 0
    )
    assert result.returncode == 4
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "said.txt").write_text(result.stdout + result.stderr)
    assert find_markers(tmp_path / "said", planted) == []


def test_names_stay_where_they_are_asked_for(planted: Planted, tmp_path: Path) -> None:
    options: Any = {**ALIKE, "identifiers": "keep", "quiet": True}
    shardforge.build(planted.folder, tmp_path / "out", kind="dicom", **options)
    leaks = find_markers(tmp_path / "out", planted)
    assert any(leak.what.startswith(f"{STEM}0000001 ") for leak in leaks)
    assert any(leak.what == f"UID {UID_STEM}" for leak in leaks)
    sources = {row["source"] for row in all_rows(tmp_path / "out")}
    assert {path.relative_to(planted.folder).as_posix() for path in planted.pictures} <= sources
    assert Manifest.read(tmp_path / "out").privacy == {"identifiers": "keep"}


@pytest.fixture(scope="module")
def mapped(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``out``, ``one.key`` and its private map."""
    folder = tmp_path_factory.mktemp("mapped")
    options: Any = {**ALIKE, "key_file": folder / "one.key", "private_map": True, "quiet": True}
    shardforge.build(planted.folder, folder / "out", kind="dicom", **options)
    return folder


def test_the_key_stays_outside_and_its_id_inside(mapped: Path) -> None:
    secret = (mapped / "one.key").read_bytes().split()[-1]
    written = b"".join(path.read_bytes() for path in (mapped / "out").rglob("*") if path.is_file())
    assert secret not in written
    assert bytes.fromhex(secret.decode()) not in written
    privacy = json.loads((mapped / "out" / "dataset.json").read_text())["privacy"]
    assert privacy["identifiers"] == "hash"
    assert len(privacy["key_id"]) >= 8
    assert (mapped / "one.key").stat().st_mode & 0o077 == 0
    assert (mapped / "one.key.map.csv").stat().st_mode & 0o077 == 0


def test_the_private_map_leads_back_from_every_hash(planted: Planted, mapped: Path) -> None:
    with open(mapped / "one.key.map.csv", newline="") as file:
        originals = {(line["kind"], line["hash"]): line["original"] for line in csv.DictReader(file)}
    columns = {"dicom_patient": "patient", "dicom_study_uid": "study", "dicom_series_uid": "series"}
    columns |= {"dicom_sop_uid": "sop", "source": "source"}
    rows = all_rows(mapped / "out")
    for row in rows:
        path = planted.folder / originals["source", row["source"]]
        assert path.is_file()
        for column, kind in columns.items():
            if column != "source" and row[column] is not None:
                original = originals[kind, row[column]]
                assert original.encode() in path.read_bytes()
    assert len({row["dicom_patient"] for row in rows} - {None}) == PATIENTS


def test_another_key_is_refused_on_the_same_dataset(planted: Planted, mapped: Path) -> None:
    options: Any = {**ALIKE, "quiet": True}
    other = mapped / "other.key"
    with pytest.raises(UsageError, match="another identity key"):
        shardforge.build(planted.folder, mapped / "out", kind="dicom", key_file=other, **options)
    again = shardforge.build(planted.folder, mapped / "out", kind="dicom", key_file=mapped / "one.key", **options)
    assert again.status == "up to date"


def test_two_keys_give_the_same_tars_and_other_hashes(planted: Planted, mapped: Path, tmp_path: Path) -> None:
    options: Any = {**ALIKE, "key_file": tmp_path / "two.key", "quiet": True}
    shardforge.build(planted.folder, tmp_path / "out", kind="dicom", **options)
    names = sorted(path.name for path in (mapped / "out").glob("*.tar"))
    assert names == sorted(path.name for path in (tmp_path / "out").glob("*.tar"))
    for name in names:
        assert (mapped / "out" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    one, two = all_rows(mapped / "out"), all_rows(tmp_path / "out")
    for column in ("source", "source_sha256", "dicom_patient", "dicom_sop_uid", "group"):
        assert not {row[column] for row in one} & {row[column] for row in two} - {None}, column
    assert [row["key"] for row in one] == [row["key"] for row in two]


def test_the_key_may_lie_in_neither_source_nor_output(planted: Planted, tmp_path: Path) -> None:
    for place in (planted.folder / "x.key", tmp_path / "out" / "x.key"):
        with pytest.raises(UsageError, match="identity key would lie inside"):
            shardforge.build(planted.folder, tmp_path / "out", kind="dicom", key_file=place, quiet=True)
        assert not place.exists()


def test_a_user_has_one_key_made_on_first_use(corpus: Path, tmp_path: Path) -> None:
    env = environment(XDG_CONFIG_HOME=str(tmp_path / "config"))
    source = corpus / "dicom" / "patients_made"
    first = run("build", source, tmp_path / "out", "--dry-run", "--workers", 1, env=env)
    again = run("build", source, tmp_path / "out", "--dry-run", "--workers", 1, env=env)
    assert (first.returncode, again.returncode) == (0, 0)
    assert "made a new identity key" in first.stderr
    assert "made a new identity key" not in again.stderr
    assert (tmp_path / "config" / "shardforge" / "identity.key").is_file()


def test_what_the_corpus_forbids_appears_nowhere(corpus: Path, key_file: Path, tmp_path: Path) -> None:
    options = ("--kind", "dicom", "--key-file", key_file, "--max-errors", "100%", "--format", "png")
    result = run("build", corpus / "dicom" / "phi", tmp_path / "out", *options, "--burned-in", "keep")
    written = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    written += [json.dumps(all_rows(tmp_path / "out"), default=str).encode(), result.stdout.encode()]
    written.append(result.stderr.encode())
    forbidden = {word for expect in EXPECTED.values() for word in expect.get("forbidden_strings", ())}
    names = {path.name for path in (corpus / "dicom" / "phi").iterdir()}
    assert len(forbidden) > 5
    found = {word for word in forbidden | names for data in written if len(word) > 2 and word.encode() in data}
    assert found == set()
    told = json.dumps(all_rows(tmp_path / "out"), default=str) + result.stdout + result.stderr
    assert "ZZ" not in told
