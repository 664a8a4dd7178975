"""Which column of a table names the items."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardforge.errors import UsageError
from shardforge.sources.dicom_labels.ids import SliceIds
from shardforge.sources.dicom_labels.keys import KeyColumns, choose_key
from shardforge.sources.dicom_labels.matching import Matcher
from shardforge.sources.dicom_labels.options import JoinOptions, Key
from shardforge.sources.tables.open import open_table

ITEMS = [
    (SliceIds("1.1.1 ", "1.1", "1.0", "P1", 0, "P1/s/a.dcm"),),
    (SliceIds("1.1.2\0", "1.1", "1.0", "P1 ", 1, "P1/s/b.dcm"),),
    (SliceIds("1.2.1", "1.2", "1.0", "P1", 0, "P1/t/a.dcm"),),
    (SliceIds("2.1.1", "2.1", "2.0", "p1", 0, "p1/s/c.dcm"),),
    (SliceIds("3.1.1", "3.1", "3.0", "", 0, "x/d.dcm"),),
]


def chosen(tmp_path: Path, text: str, options: JoinOptions | None = None) -> tuple[KeyColumns, list[tuple[int, ...]]]:
    """The key of a csv table, and the items of each of its rows."""
    path = tmp_path / "labels.csv"
    path.write_text(text)
    table, options = open_table(path), options or JoinOptions()
    matcher = Matcher(ITEMS, options.first_slice or 0)
    key = choose_key(table, options, matcher)
    return key, [key.find(key.words(cells), matcher).items for _, cells in table.rows()]


@pytest.mark.parametrize(
    ("column", "cell", "key", "items"),
    [
        ("SOPInstanceUID", "1.1.2", "sop", (1,)),
        ("sop_instance_uid", " 1.1.1", "sop", (0,)),
        ("image_id", "1.2.1", "sop", (2,)),
        ("image_id", "b", "sop", (1,)),
        ("ImageId", "b.png", "sop", (1,)),
        ("dicom_id", "c.dcm", "sop", (3,)),
        ("id", "2.1.1", "sop", (3,)),
        ("SeriesInstanceUID", "1.1", "series", (0, 1)),
        ("series_id", "1.2", "series", (2,)),
        ("StudyInstanceUID", "1.0", "study", (0, 1, 2)),
        ("study_id", "2.0", "study", (3,)),
        ("PatientID", "P1", "patient", (0, 1, 2)),
        ("patientId", "p1", "patient", (3,)),
        ("patient_id", "P1 ", "patient", (0, 1, 2)),
        ("Path", "CheXpert-v1.0-small/P1/t/a.jpg", "path", (2,)),
        ("file_name", "P1/s/a.dcm", "path", (0,)),
    ],
)
def test_the_usual_names_are_recognised(
    tmp_path: Path, column: str, cell: str, key: str, items: tuple[int, ...]
) -> None:
    found, rows = chosen(tmp_path, f"label,{column}\nx,{cell}\n")
    assert (found.key, rows) == (key, [items])


def test_patients_and_slices_go_together(tmp_path: Path) -> None:
    found, rows = chosen(tmp_path, "patient_id,slice,label\nP1,1,x\np1,0,y\np1,1,z\nP1,x,z\n")
    assert found.key == "slice"
    assert rows == [(1,), (3,), (), ()]


def test_the_first_slice_may_be_called_one(tmp_path: Path) -> None:
    _, rows = chosen(tmp_path, "patient_id,slice,label\np1,1,y\nP1,2,x\n", JoinOptions(first_slice=1))
    assert rows == [(3,), (1,)]


def test_a_slice_number_that_several_series_have_means_none(tmp_path: Path) -> None:
    # P1 has two series with a slice 0.
    _, rows = chosen(tmp_path, "patient_id,slice,label\nP1,0,x\nP1,1,x\n")
    assert rows == [(), (1,)]


def test_a_name_that_several_files_have_means_none(tmp_path: Path) -> None:
    _, rows = chosen(tmp_path, "image_id,label\na,x\nb,x\n")
    assert rows == [(), (1,)]


def test_the_most_specific_column_that_names_items_is_taken(tmp_path: Path) -> None:
    both, _ = chosen(tmp_path, "StudyInstanceUID,SOPInstanceUID,label\n1.0,1.1.1,x\n")
    assert both.key == "sop"
    elsewhere, _ = chosen(tmp_path, "StudyInstanceUID,SOPInstanceUID,label\n1.0,9.9,x\n")
    assert elsewhere.key == "study"


def test_rows_of_one_class_are_recognised(tmp_path: Path) -> None:
    found, rows = chosen(tmp_path, "ID,Label\n1.1.1_any,1\nb_any,0\n9_any,0\n")
    assert (found.long, rows) == (True, [(0,), (1,), ()])


def test_a_number_after_the_underscore_is_no_class(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of its rows names an image"):
        chosen(tmp_path, "ID,Label\nb_1,1\n")


@pytest.mark.parametrize(
    ("key", "columns", "text", "items"),
    [
        ("patient", ("who",), "who,label\nP1,x\n", (0, 1, 2)),
        ("slice", ("who", "n"), "n,who,label\n1,P1,x\n", (1,)),
        ("study", (), "SOPInstanceUID,StudyInstanceUID,label\n1.1.1,2.0,x\n", (3,)),
        ("series", ("id",), "id,label\n1.2,x\n", (2,)),
    ],
)
def test_the_key_can_be_named(
    tmp_path: Path, key: Key, columns: tuple[str, ...], text: str, items: tuple[int, ...]
) -> None:
    found, rows = chosen(tmp_path, text, JoinOptions(key=key, key_columns=columns))
    assert (found.key, rows) == (key, [items])


def test_an_empty_identifier_names_nothing(tmp_path: Path) -> None:
    # The last item has no PatientID; a row without one is not about it.
    _, rows = chosen(tmp_path, "PatientID,label\n,x\n  ,x\nP1,y\n")
    assert rows == [(), (), (0, 1, 2)]


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("colour,label\nx,y\n", JoinOptions(), "no column tells which items the rows are about; its columns: colour"),
        ("PatientID,label\nP9,y\n", JoinOptions(), "none of its rows names an image.*patient IDs from 'PatientID'"),
        ("who,label\nP1,y\n", JoinOptions(key="patient", key_columns=("whom",)), "has no column 'whom'"),
        ("who,label\nP1,y\n", JoinOptions(key="slice", key_columns=("who",)), "1 key columns for the key slice"),
        ("who,label\nP1,y\n", JoinOptions(key_columns=("who",)), "1 key columns for the key of no kind"),
    ],
)
def test_what_cannot_be_a_key_is_told(tmp_path: Path, text: str, options: JoinOptions, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        chosen(tmp_path, text, options)
