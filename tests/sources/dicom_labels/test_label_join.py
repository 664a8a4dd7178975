"""What the rows of a table say about DICOM items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydicom import dcmread

from shardforge.errors import UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom_labels.ids import SliceIds
from shardforge.sources.dicom_labels.join import LabelJoin, join_labels
from shardforge.sources.dicom_labels.options import JoinOptions
from shardforge.sources.options import SourceOptions


def sop(*uids: str) -> list[tuple[SliceIds, ...]]:
    """One item per SOP instance UID."""
    return [(SliceIds(uid, path=f"{uid}.dcm"),) for uid in uids]


def volume(*uids: str) -> tuple[SliceIds, ...]:
    return tuple(SliceIds(uid, "1.9", "1.8", "P1", at, f"v/{uid}.dcm") for at, uid in enumerate(uids))


def join(
    tmp_path: Path,
    text: str,
    items: Sequence[Sequence[SliceIds]],
    options: JoinOptions | None = None,
    name: str = "labels.csv",
    **columns: Any,
) -> LabelJoin:
    path = tmp_path / name
    path.write_text(text)
    return join_labels(path, options or JoinOptions(SourceOptions(**columns)), items)


def labels(joined: LabelJoin) -> list[Any]:
    return [item.label for item in joined.items]


def test_every_slice_of_a_study_gets_the_studys_row(tmp_path: Path) -> None:
    items = [(SliceIds(f"1.{n}", study="7"),) for n in range(3)] + [(SliceIds("2.1", study="8"),)]
    joined = join(tmp_path, "StudyInstanceUID,label,split,age\n7,sick,Train,61\n8,well,val,\n", items)
    assert labels(joined) == ["sick", "sick", "sick", "well"]
    assert [item.split for item in joined.items] == ["train", "train", "train", "val"]
    assert [item.columns for item in joined.items] == [{"age": 61}] * 3 + [{"age": None}]
    assert (joined.columns, joined.splits_declared) == ({"age": pa.int64()}, True)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
def test_every_kind_of_table_is_joined(tmp_path: Path, name: str) -> None:
    rows = [{"SOPInstanceUID": "1.1", "label": "a", "caption": "one"}, {"SOPInstanceUID": "1.2", "label": "b"}]
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [list(rows[0]), ["1.1", "a", "one"], ["1.2", "b", ""]]
        path.write_text("\n".join(("," if name.endswith("csv") else "\t").join(line) for line in lines))
    joined = join_labels(path, JoinOptions(), sop("1.1", "1.2"))
    assert [(item.label, item.caption) for item in joined.items] == [("a", "one"), ("b", None)]


def test_rows_and_items_without_a_partner_are_counted_but_never_named(tmp_path: Path) -> None:
    joined = join(tmp_path, "SOPInstanceUID,label\n1.1,a\n66.6,b\n77.7,c\n", sop("1.1", "1.2", "1.3"))
    assert labels(joined) == ["a", None, None]
    assert [item.rows for item in joined.items] == [1, 0, 0]
    assert "labels.csv: 2 rows name no item (line 3, for one)" in joined.notes
    assert "labels.csv: 2 of 3 items have no row" in joined.notes
    assert joined.notes[0] == (
        "labels.csv: SOP instance UIDs or names of files from 'SOPInstanceUID', labels from 'label'"
    )
    assert "66.6" not in " ".join(joined.notes)


def test_identifiers_become_no_columns_unless_wanted(tmp_path: Path) -> None:
    text = "SOPInstanceUID,Patient ID,PatientName,AccessionNumber,label,dose\n1.1,P1,N,A,x,0.5\n"
    joined = join(tmp_path, text, sop("1.1"))
    assert joined.items[0].columns == {"dose": 0.5}
    assert (
        "labels.csv: not taken over, as they identify patients or files: Patient ID, PatientName, AccessionNumber"
        in joined.notes
    )
    kept = join(tmp_path, text, sop("1.1"), JoinOptions(keep_identifiers=True))
    assert kept.items[0].columns == {"Patient ID": "P1", "PatientName": "N", "AccessionNumber": "A", "dose": 0.5}


def test_groups_splits_and_keys_come_from_the_columns_named(tmp_path: Path) -> None:
    text = "SOPInstanceUID,site,fold,mykey\n1.1,4,B,k1\n"
    joined = join(tmp_path, text, sop("1.1"), group_column="site", split_column="fold", key_column="mykey")
    item = joined.items[0]
    assert (item.group, item.split, item.key) == ("4", "b", "k1")


def test_slices_that_agree_label_their_volume(tmp_path: Path) -> None:
    joined = join(tmp_path, "SOPInstanceUID,label\n1.1,a\n1.2,a\n", [volume("1.1", "1.2")])
    assert (joined.items[0].label, joined.items[0].rows) == ("a", 2)


def test_slices_that_contradict_each_other_fail_their_volume(tmp_path: Path) -> None:
    joined = join(tmp_path, "SOPInstanceUID,label\n1.1,a\n1.2,b\n2.1,a\n", [volume("1.1", "1.2"), *sop("2.1")])
    bad, good = joined.items
    assert (bad.label, bad.problem) == (None, Reason.BAD_LABEL)
    assert "'a'" in bad.detail
    assert "'b'" in bad.detail
    assert (good.label, good.problem) == ("a", None)


def test_classes_of_slices_add_up_where_an_item_may_have_several(tmp_path: Path) -> None:
    text = "SOPInstanceUID,label\n1.1,a\n1.2,b\n1.2,a\n"
    joined = join(tmp_path, text, [volume("1.1", "1.2")], JoinOptions(multi=True))
    assert joined.items[0].label == ("a", "b")


def test_lists_of_classes_add_up(tmp_path: Path) -> None:
    text = "SOPInstanceUID,label\n1.1,a|b\n1.2,b|c\n"
    joined = join(tmp_path, text, [volume("1.1", "1.2")], label_separator="|")
    assert joined.items[0].label == ("a", "b", "c")


@pytest.mark.parametrize(
    ("columns", "what"),
    [({"group_column": "g"}, "groups"), ({"split_column": "g"}, "splits")],
    ids=["group", "split"],
)
def test_one_item_in_two_groups_or_splits_fails(tmp_path: Path, columns: dict[str, str], what: str) -> None:
    text = "SOPInstanceUID,g\n1.1,a\n1.2,b\n"
    joined = join(tmp_path, text, [volume("1.1", "1.2")], **columns)
    assert joined.items[0].problem is Reason.BAD_LABEL
    assert joined.items[0].detail == f"the rows of the item name the {what} 'a' and 'b'"


def test_a_further_column_is_empty_where_an_items_rows_differ(tmp_path: Path) -> None:
    text = "SOPInstanceUID,label,score,dose\n1.1,a,1,5\n1.2,a,2,5\n"
    joined = join(tmp_path, text, [volume("1.1", "1.2")])
    assert joined.items[0].columns == {"score": None, "dose": 5}
    assert "labels.csv: empty where the rows of an item differ: score" in joined.notes


def test_a_file_that_two_paths_of_the_table_lead_to_gets_no_label(tmp_path: Path) -> None:
    items = [(SliceIds("1.1", path="view1.dcm"),), (SliceIds("1.2", path="view2.dcm"),)]
    joined = join(tmp_path, "Path,label\np1/view1.jpg,a\np2/view1.jpg,a\np1/view2.jpg,b\n", items)
    assert [item.problem for item in joined.items] == [Reason.BAD_LABEL, None]


def test_paths_are_of_no_account_where_uids_are_the_key(tmp_path: Path) -> None:
    items = [(SliceIds("1.1", path="view1.dcm"),), (SliceIds("1.2", path="view2.dcm"),)]
    text = "SOPInstanceUID,Path,label\n9.1,p1/view1.dcm,a\n9.2,p2/view1.dcm,b\n1.2,view2.dcm,c\n"
    joined = join(tmp_path, text, items)
    assert [(item.label, item.problem) for item in joined.items] == [(None, None), ("c", None)]


def test_a_split_that_is_no_name_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 2: '1st' in the column 'split' is no name for a split"):
        join(tmp_path, "SOPInstanceUID,split\n1.1,1st\n", sop("1.1"))


def test_tables_join_the_patients_of_the_corpus(tmp_path: Path, corpus: Path) -> None:
    root = corpus / "dicom"
    items = []
    for path in sorted([*(root / "patients").rglob("*/*"), *(root / "patients_made").iterdir()]):
        if path.is_file() and path.name != "DICOMDIR":
            header = dcmread(path, stop_before_pixels=True)
            ids = header.SOPInstanceUID, header.SeriesInstanceUID, header.StudyInstanceUID, header.PatientID
            items.append((SliceIds(*map(str, ids), path=path.relative_to(root).as_posix()),))
    text = "PatientID,label\n77654033,a\n98890234,b\nP1,c\nP2,d\n"
    by_patient = labels(join(tmp_path, text, items))
    # 7 pictures of one patient and 24 of the other; of those made, two of P1 ("P1" and "P1 "), two of P2, one of p1
    # (another person) and one of nobody.
    assert [by_patient.count(label) for label in ("a", "b", "c", "d", None)] == [7, 24, 2, 2, 2]
    by_path = join(tmp_path, "Path,label\nDB/patients/77654033/CT2/17136,x\npatients_made/pt4.png,y\n", items)
    named = {item[0].path: joined.label for item, joined in zip(items, by_path.items, strict=True) if joined.label}
    assert named == {"patients/77654033/CT2/17136": "x", "patients_made/pt4.dcm": "y"}
