"""A table's rows become items."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shardforge.errors import UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Scan
from shardforge.sources.scan import SourceOptions, scan

Lay = Callable[..., Path]

ROWS: list[dict[str, Any]] = [
    {"path": "a.jpg", "label": "cat", "site": "x, y", "age": 41, "weight": 1.5},
    {"path": "d/b.jpg", "label": "dog", "site": 'say "z"', "age": None, "weight": 2.0},
]


def _quote(value: Any) -> str:
    return "" if value is None else '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes rows in the kind of table that the extension names."""
    names = list(rows[0])
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        lines = [separator.join(names), *(separator.join(_quote(row[name]) for name in names) for row in rows)]
        path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", newline="")
    return path


def scan_csv(root: Path, content: str, **options: Any) -> Scan:
    table = root.parent / "items.csv"
    table.write_text(content)
    return scan(root, SourceOptions(table=table, **options))


def problems(found: Scan) -> dict[str, Reason | None]:
    return {item.source: item.problem for item in found.items}


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "jsonl"])
def test_every_kind_of_table_gives_the_same_items(lay: Lay, tmp_path: Path, kind: str) -> None:
    root = lay("a.jpg", "d/b.jpg", contents={"a.txt": "caption"})
    found = scan(root, SourceOptions(table=write(tmp_path / f"items.{kind}", ROWS)))
    assert found.layout == f"table items.{kind}"
    assert [item.source for item in found.items] == ["a.jpg", "d/b.jpg"]
    assert [item.label for item in found.items] == ["cat", "dog"]
    assert [item.columns for item in found.items] == [
        {"site": "x, y", "age": 41, "weight": 1.5},
        {"site": 'say "z"', "age": None, "weight": 2.0},
    ]
    assert found.columns == {"site": pa.string(), "age": pa.int64(), "weight": pa.float64()}
    assert found.items[0].files["txt"].path == "a.txt"
    assert found.unknown == []
    assert not found.splits_declared


@pytest.mark.parametrize("name", ["path", "file", "filename", "image", "image_path", "file_name", "name", "Image"])
def test_the_path_column_is_found_by_obvious_names(lay: Lay, name: str) -> None:
    assert len(scan_csv(lay("a.jpg"), f"x,{name}\n1,a.jpg\n").items) == 1


def test_a_table_without_a_path_column_lists_its_columns(lay: Lay) -> None:
    with pytest.raises(UsageError, match=r"items\.csv: no column of paths .* its columns: picture, label"):
        scan_csv(lay("a.jpg"), "picture,label\na.jpg,1\n")
    assert len(scan_csv(lay("a.jpg"), "picture,label\na.jpg,1\n", path_column="picture").items) == 1


def test_a_column_that_is_not_there_is_a_usage_error(lay: Lay) -> None:
    with pytest.raises(UsageError, match="has no column 'age'; its columns: path, label"):
        scan_csv(lay("a.jpg"), "path,label\na.jpg,1\n", label_columns=("age",))


def test_named_columns_reach_their_places_and_no_others(lay: Lay) -> None:
    content = "file,kind,p,s,c,m,id,rest\na.jpg,cat,7,Train,A cat.,m/1.tif,k1,r\nb.jpg,dog,8,val,,,k2,\n"
    options = {
        "group_column": "p",
        "split_column": "s",
        "caption_column": "c",
        "mask_column": "m",
        "key_column": "id",
    }
    found = scan_csv(lay("a.jpg", "b.jpg", "m/1.tif"), content, label_columns=("kind",), **options)
    a, b = found.items
    assert (a.label, a.group, a.split, a.caption, a.key, a.columns) == (
        "cat",
        "7",
        "train",
        "A cat.",
        "k1",
        {"rest": "r"},
    )
    assert (b.label, b.group, b.split, b.caption, b.key, b.columns) == ("dog", "8", "val", None, "k2", {"rest": None})
    assert a.files["mask.png"].path == "m/1.tif"
    assert "mask.png" not in b.files
    assert found.splits_declared
    assert found.unknown == []


def test_obvious_names_serve_for_label_split_caption_and_mask(lay: Lay) -> None:
    found = scan_csv(lay("a.jpg", "b.png"), "path,Class,split,text,mask,n\na.jpg,cat,test,words,b.png,1\n")
    item = found.items[0]
    assert (item.label, item.split, item.caption, item.columns) == ("cat", "test", "words", {"n": 1})
    assert item.files["mask.png"].path == "b.png"


@pytest.mark.parametrize("name", ["patient", "patient_id", "group"])
def test_a_group_is_never_chosen_but_a_likely_column_is_noted(lay: Lay, name: str) -> None:
    found = scan_csv(lay("a.jpg"), f"path,{name}\na.jpg,p1\n")
    assert found.items[0].group is None
    assert found.items[0].columns == {name: "p1"}
    assert any(name in note and "--group" in note for note in found.notes)
    chosen = scan_csv(lay("a.jpg"), f"path,{name}\na.jpg,p1\n", group_column=name)
    assert chosen.items[0].group == "p1"
    assert not any("--group" in note for note in chosen.notes)


def test_several_label_columns_give_one_value_each(lay: Lay) -> None:
    found = scan_csv(lay("a.jpg", "b.jpg"), "path,x,y\na.jpg,1.5,\nb.jpg,,\n", label_columns=("x", "y"))
    assert [item.label for item in found.items] == [("1.5", ""), None]
    assert found.items[1].problem == Reason.MISSING_LABEL


def test_a_separator_cuts_a_cell_into_several_classes(lay: Lay) -> None:
    content = "path,label\na.jpg,cat| dog |\nb.jpg,cat\nc.jpg,|\n"
    found = scan_csv(lay("a.jpg", "b.jpg", "c.jpg"), content, label_separator="|")
    assert [item.label for item in found.items] == [("cat", "dog"), ("cat",), None]
    assert found.items[2].problem == Reason.MISSING_LABEL


def test_ids_stay_what_they_are(lay: Lay) -> None:
    content = "path,label,case,long,mixed,sign,flag\na.jpg,007,007,12345678901234567890,1,+1,true\n"
    content += "b.jpg,8,008,1,x,2,False\n"
    found = scan_csv(lay("a.jpg", "b.jpg"), content)
    assert [item.label for item in found.items] == ["007", "8"]
    assert found.items[0].columns == {
        "case": "007",
        "long": "12345678901234567890",
        "mixed": "1",
        "sign": "+1",
        "flag": True,
    }


def test_a_cell_of_thousands_of_digits_is_text(lay: Lay) -> None:
    assert scan_csv(lay("a.jpg"), f"path,n\na.jpg,{'9' * 5000}\n").columns == {"n": pa.string()}


def test_words_for_missing_values_stay_words(lay: Lay) -> None:
    found = scan_csv(lay("a.jpg", "b.jpg"), "path,label,country\na.jpg,null,NA\nb.jpg,nan,DE\n")
    assert [(item.label, item.columns["country"]) for item in found.items] == [("null", "NA"), ("nan", "DE")]


def test_the_tail_of_a_long_column_decides_its_type_too(lay: Lay) -> None:
    rows = "".join(f"a.jpg,{number}\n" for number in range(20_000))
    found = scan_csv(lay("a.jpg"), f"path,n\n{rows}a.jpg,007\n")
    assert found.columns == {"n": pa.string()}
    assert found.items[5].columns == {"n": "5"}


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_typed_tables_keep_the_types_of_labels(lay: Lay, tmp_path: Path, kind: str) -> None:
    cases: list[tuple[Any, Any]] = [(3, 3), (0.5, 0.5), ("7", "7"), ([1, 2], (1, 2)), (["x"], ("x",)), ([], ())]
    cases += [(None, None), (True, 1)]
    for given, expected in cases:
        rows = [{"path": "a.jpg", "label": given}]
        label = scan(lay("a.jpg"), SourceOptions(table=write(tmp_path / f"t.{kind}", rows))).items[0].label
        assert (label, type(label)) == (expected, type(expected))


def test_a_label_that_can_be_none_fails_its_item(lay: Lay, tmp_path: Path) -> None:
    rows = [{"path": "a.jpg", "label": {"x": 1}}, {"path": "b.jpg", "label": "cat"}]
    found = scan(lay("a.jpg", "b.jpg"), SourceOptions(table=write(tmp_path / "t.jsonl", rows)))
    assert problems(found) == {"a.jpg": Reason.BAD_LABEL, "b.jpg": None}


def test_parquet_columns_keep_their_types(lay: Lay, tmp_path: Path) -> None:
    when = datetime(2024, 2, 29, 12, 30)
    table = pa.table(
        {
            "path": pa.array(["a.jpg"]).dictionary_encode(),
            "x": pa.array([0.1], pa.float32()),
            "n": pa.array([7], pa.int16()),
            "when": pa.array([when], pa.timestamp("us")),
            "kind": pa.array(["k"]).dictionary_encode(),
            "box": pa.array([[1.0, 2.0]], pa.list_(pa.float32())),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    found = scan(lay("a.jpg"), SourceOptions(table=tmp_path / "t.parquet"))
    expected = {"x": pa.float32(), "n": pa.int16(), "when": pa.timestamp("us"), "kind": pa.string()}
    assert found.columns == {**expected, "box": pa.list_(pa.float32())}
    values = found.items[0].columns
    assert (values["n"], values["when"], values["kind"], values["box"]) == (7, when, "k", [1.0, 2.0])


def test_json_columns_have_one_type_or_become_text(lay: Lay, tmp_path: Path) -> None:
    rows = [
        {"path": "a.jpg", "n": 1, "mixed": 1, "boxes": [[1, 2]], "big": 2**70},
        {"path": "b.jpg", "n": 0.5, "mixed": "x", "boxes": [], "late": True},
    ]
    found = scan(lay("a.jpg", "b.jpg"), SourceOptions(table=write(tmp_path / "t.jsonl", rows)))
    a, b = (item.columns for item in found.items)
    assert a == {"n": 1.0, "mixed": "1", "boxes": [[1, 2]], "big": str(2**70), "late": None}
    assert b == {"n": 0.5, "mixed": "x", "boxes": [], "big": None, "late": True}
    for name, kind in found.columns.items():
        assert pa.array([a[name], b[name]], kind).type == kind


def test_the_tail_of_a_long_json_column_decides_its_type_too(lay: Lay, tmp_path: Path) -> None:
    rows = [{"path": "a.jpg", "n": number, "m": number} for number in range(10_000)]
    rows.append({"path": "a.jpg", "n": 0.5, "m": "x"})
    found = scan(lay("a.jpg"), SourceOptions(table=write(tmp_path / "t.jsonl", rows)))
    assert found.columns == {"n": pa.float64(), "m": pa.string()}
    assert found.items[7].columns == {"n": 7.0, "m": "7"}


def test_groups_and_keys_of_whole_numbers_read_like_words(lay: Lay, tmp_path: Path) -> None:
    table = pa.table({"path": ["a.jpg", "b.jpg"], "p": pa.array([12.0, None]), "k": [1, 2]})
    pq.write_table(table, tmp_path / "t.parquet")
    options = SourceOptions(table=tmp_path / "t.parquet", group_column="p", key_column="k")
    assert [(i.group, i.key) for i in scan(lay("a.jpg", "b.jpg"), options).items] == [("12", "1"), (None, "2")]


def test_paths_are_relative_to_the_source_and_else_to_the_tables_folder(lay: Lay, source: Path) -> None:
    lay("a.jpg", "sub/a.jpg", "sub/b.jpg", contents={"sub/items.csv": "path\na.jpg\nb.jpg\n"})
    found = scan(source, SourceOptions(table=source / "sub" / "items.csv"))
    assert [item.source for item in found.items] == ["a.jpg", "sub/b.jpg"]
    assert [(thing.path, thing.why) for thing in found.unknown] == [("sub/a.jpg", "not in the table")]


def test_a_table_above_the_source_may_name_files_from_its_own_folder(lay: Lay, source: Path) -> None:
    root = lay("a.jpg")
    assert problems(scan_csv(root, f"path\n{source.name}/a.jpg\n")) == {"a.jpg": None}


def test_the_tables_name_may_be_relative(lay: Lay, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay("cat/a.jpg", contents={"cat/items.csv": "path\na.jpg\n"})
    monkeypatch.chdir(source / "cat")
    found = scan(Path(".."), SourceOptions(table=Path("items.csv")))
    assert problems(found) == {"cat/a.jpg": None}
    assert found.unknown == []


def test_absolute_paths_inside_the_source_work_also_through_a_link(lay: Lay, source: Path, tmp_path: Path) -> None:
    lay("a.jpg", "b.jpg")
    (tmp_path / "alias").symlink_to(source)
    found = scan_csv(tmp_path / "alias", f"path\n{source}/a.jpg\n{tmp_path}/alias/./x/../b.jpg\n")
    assert problems(found) == {"a.jpg": None, "b.jpg": None}


def test_paths_out_of_the_source_are_failed_items(lay: Lay, source: Path, tmp_path: Path) -> None:
    (tmp_path / "raw2").mkdir()
    (tmp_path / "raw2" / "x.jpg").write_bytes(b"x")
    lay("a.jpg")
    (source / "link").symlink_to(tmp_path / "raw2")
    outside = ["../raw2/x.jpg", f"{tmp_path}/raw2/x.jpg", "/etc/passwd", "link/x.jpg", "../../../../etc/passwd"]
    found = scan_csv(source, "path\na.jpg\n" + "".join(f"{name}\n" for name in outside))
    assert problems(found) == {"a.jpg": None, **dict.fromkeys(outside, Reason.OUTSIDE_SOURCE)}
    assert all(not item.files for item in found.items if item.problem)
    followed = scan_csv(source, "path\na.jpg\nlink/x.jpg\n", follow_symlinks=True)
    assert problems(followed) == {"a.jpg": None, "link/x.jpg": None}


def test_two_dots_at_the_start_of_a_name_are_no_parent(lay: Lay) -> None:
    assert problems(scan_csv(lay("..twodots.jpg"), "path\n..twodots.jpg\n")) == {"..twodots.jpg": None}


def test_missing_special_and_unnamed_files_are_failed_items(lay: Lay, source: Path) -> None:
    lay("a.jpg", "d/b.jpg")
    os.mkfifo(source / "pipe.jpg")
    (source / "gone.jpg").symlink_to("nowhere")
    found = scan_csv(source, "path,n\na.jpg,1\nno.jpg,2\npipe.jpg,3\ngone.jpg,4\nd,5\n,6\n.,7\n")
    assert problems(found) == {
        "a.jpg": None,
        "no.jpg": Reason.MISSING_FILE,
        "pipe.jpg": Reason.UNREADABLE,
        "gone.jpg": Reason.MISSING_FILE,
        "d": Reason.MISSING_FILE,
        "items.csv line 7": Reason.MISSING_FILE,
        ".": Reason.MISSING_FILE,
    }
    assert len(found.items) == 7


def test_a_named_mask_that_is_missing_or_outside_fails_its_item(lay: Lay) -> None:
    content = "path,mask\na.jpg,no.png\nb.jpg,../m.png\nc.jpg,\n"
    found = scan_csv(lay("a.jpg", "b.jpg", "c.jpg"), content)
    assert problems(found) == {"a.jpg": Reason.MISSING_FILE, "b.jpg": Reason.OUTSIDE_SOURCE, "c.jpg": None}


def test_when_no_file_exists_the_first_is_named_with_its_folder(lay: Lay, source: Path) -> None:
    with pytest.raises(UsageError) as error:
        scan_csv(lay("a.jpg"), "path\nimg/first.jpg\nimg/second.jpg\n")
    assert "'img/first.jpg'" in str(error.value)
    assert str(source) in str(error.value)


def test_names_match_in_any_normal_form(lay: Lay) -> None:
    root = lay("e\u0301.jpg", "ü.jpg", b"caf\xe9.jpg")
    found = scan_csv(root, "path\né.jpg\nu\u0308.jpg\n")
    assert problems(found) == {"é.jpg": None, "ü.jpg": None}
    assert [thing.path for thing in found.unknown] == ["caf\\xe9.jpg"]


def test_files_of_any_name_are_images_if_the_table_says_so(lay: Lay) -> None:
    root = lay(contents={"scan.bin": "??", ".hidden/a.jpg": "x", "x.json": "{}"})
    found = scan_csv(root, "path\nscan.bin\n.hidden/a.jpg\nx.json\n")
    assert set(problems(found).values()) == {None}
    assert found.unknown == []


def test_what_the_table_does_not_mention_is_counted(lay: Lay, source: Path) -> None:
    root = lay(
        "a.jpg", "b.jpg", contents={"b.json": "{}", "c.pdf": "x", "items.csv": "path\na.jpg\n", "a.json": "{}"}
    )
    found = scan(root, SourceOptions(table=source / "items.csv"))
    assert {thing.path: thing.why for thing in found.unknown} == dict.fromkeys(
        ["b.jpg", "b.json", "c.pdf"], "not in the table"
    )


def test_rows_that_name_one_file_are_items_of_their_own_in_order(lay: Lay) -> None:
    found = scan_csv(lay("a.jpg", "b.jpg"), "path,id\nb.jpg,3\na.jpg,2\n./a.jpg,1\n", key_column="id")
    assert [(item.source, item.key) for item in found.items] == [("a.jpg", "2"), ("a.jpg", "1"), ("b.jpg", "3")]
    assert "1 row names a file of an earlier row; each is an item of its own" in found.notes


def test_a_cls_file_labels_rows_without_a_label(lay: Lay) -> None:
    root = lay("a.jpg", "b.jpg", contents={"a.cls": "x", "b.cls": "y"})
    found = scan_csv(root, "path,label\na.jpg,\nb.jpg,z\n")
    assert [item.label for item in found.items] == ["x", "z"]
    assert [(t.path, t.why) for t in found.unknown] == [("b.cls", "the label comes from elsewhere")]


def test_an_illegal_split_name_is_told_with_its_line(lay: Lay) -> None:
    with pytest.raises(
        UsageError, match=r"items\.csv: line 3: 'fold 1' in the column 'split' is no name for a split"
    ):
        scan_csv(lay("a.jpg"), "path,split\na.jpg,train\na.jpg,fold 1\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"path,label\na.jpg,1\nb.jpg,1,2\n", "line 3 has 3 cells, expected 2"),
        (b"path,label\na.jpg\n", "line 2 has 1 cells, expected 2"),
        (b'path,label\na.jpg,"x\n', "line 2 cannot be parsed"),
        (b'path,label\na.jpg,"x"y\n', "line 2 cannot be parsed"),
        (b"path,label\na.jpg,caf\xe9\n", "line 2 is not UTF-8"),
        ("path,label\na.jpg,1\n".encode("utf-16"), "line 1 is not UTF-8"),
        (b"path,label\na.jpg," + b"x" * 140_000, "field larger than field limit"),
        (b"path,label\na.jpg," + b"x" * (16 * 2**20), "line 2 is longer than 16 MiB"),
        (b"path,label,label\n", "the column 'label' stands in the header twice"),
        (b"path,label\n", "lists no files"),
        (b"", "is empty"),
    ],
)
def test_a_malformed_csv_is_one_clear_error(lay: Lay, tmp_path: Path, content: bytes, message: str) -> None:
    table = tmp_path / "items.csv"
    table.write_bytes(content)
    with pytest.raises(UsageError, match=message) as error:
        scan(lay("a.jpg"), SourceOptions(table=table))
    assert error.value.where == str(table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"path": "a.jpg"}\n{"path": \n', r"line 2 is no JSON \(Expecting value\)"),
        ("[1]\n", "line 1 is no JSON object"),
        ("[" * 200_000, r"line 1 is no JSON \(RecursionError\)"),
        ('{"path": "a.jpg", "x": "\\ud800"}', "line 1 holds half a character"),
        ('{"path": 7}', "line 1: the column 'path' holds no path \\(int\\)"),
        ("\n\n", "is empty"),
    ],
)
def test_malformed_json_lines_are_one_clear_error(lay: Lay, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.jsonl").write_text(content)
    with pytest.raises(UsageError, match=message):
        scan(lay("a.jpg"), SourceOptions(table=tmp_path / "t.jsonl"))


def test_a_damaged_parquet_is_one_clear_error(lay: Lay, tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", ROWS)
    whole = table.read_bytes()
    root = lay("a.jpg", "d/b.jpg")
    for damaged in (b"", b"no parquet", whole[:-20], whole[:4] + bytes(200) + whole[204:]):
        table.write_bytes(damaged)
        with pytest.raises(UsageError, match="cannot be read as parquet"):
            scan(root, SourceOptions(table=table))


def test_an_absent_or_unknown_table_is_a_usage_error(lay: Lay, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such table"):
        scan(lay("a.jpg"), SourceOptions(table=tmp_path / "no.csv"))
    with pytest.raises(UsageError, match="is not a file"):
        scan(lay("a.jpg"), SourceOptions(table=tmp_path))
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(UsageError, match=r"a table ends in \.csv, \.tsv, \.parquet or \.jsonl, not in '\.xlsx'"):
        scan(lay("a.jpg"), SourceOptions(table=tmp_path / "t.xlsx"))


def test_quoted_line_breaks_and_blank_lines_keep_their_rows(lay: Lay) -> None:
    found = scan_csv(lay("a.jpg", "b.jpg"), 'path,note\n\na.jpg,"two\nlines"\n\nb.jpg,one\n')
    assert [item.columns["note"] for item in found.items] == ["two\nlines", "one"]


def test_a_column_without_a_name_is_called_by_its_place(lay: Lay) -> None:
    assert scan_csv(lay("a.jpg"), ",path\n0,a.jpg\n").items[0].columns == {"column_1": 0}
