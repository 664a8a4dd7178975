"""labels.csv, labels.tsv and labels.txt beside the files they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardforge.errors import UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Scan
from shardforge.sources.scan import SourceOptions, scan

Lay = Callable[..., Path]


def labels(found: Scan) -> dict[str, object]:
    return {item.source: item.label for item in found.items}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", "a.jpg,cat\nb.jpg,dog\n"),
        ("labels.csv", "\ufeffname,label\r\na.jpg,cat\r\nb.jpg,dog\r\n"),
        ("labels.csv", 'b,dog\n"a",cat'),
        ("labels.tsv", "image\tclass\na.jpg\tcat\nb.jpg\tdog\n"),
        ("labels.csv", "  \n\nname,label\na.jpg,cat\n \nb.jpg,dog\n"),
        ("labels.txt", "a.jpg cat\n\nb.jpg   dog\n"),
        ("labels.txt", "name label\na cat\nb dog\n"),
        ("labels.txt", "a.jpg\tcat\nb.jpg\tdog\n"),
        ("labels.txt", "a.jpg,cat\nb.jpg,dog\n"),
        ("Labels.TXT", "./a.jpg cat\nb.jpg dog\n"),
    ],
)
@pytest.mark.parametrize("folder", ["", "images/"])
def test_lists_give_labels_by_name(lay: Lay, name: str, content: str, folder: str) -> None:
    found = scan(lay(f"{folder}a.jpg", f"{folder}b.jpg", contents={name: content}), SourceOptions())
    assert found.layout == "labels list"
    assert labels(found) == {f"{folder}a.jpg": "cat", f"{folder}b.jpg": "dog"}
    assert {item.problem for item in found.items} == {None}
    assert found.unknown == []


def test_names_may_contain_folders_and_blanks(lay: Lay) -> None:
    content = "sub/a.jpg 3\nmy cat.jpg 4\nmy dog 5\nlonely one.jpg\n"
    root = lay("sub/a.jpg", "my cat.jpg", "my dog.jpg", "lonely one.jpg", contents={"labels.txt": content})
    found = scan(root, SourceOptions())
    assert labels(found) == {"lonely one.jpg": None, "my cat.jpg": "4", "my dog.jpg": "5", "sub/a.jpg": "3"}


def test_several_words_after_a_name_are_several_labels(lay: Lay) -> None:
    found = scan(lay("a.jpg", "b.jpg", contents={"labels.txt": "a.jpg 1 0 1\nb.jpg 0 0 1\n"}), SourceOptions())
    assert labels(found) == {"a.jpg": ("1", "0", "1"), "b.jpg": ("0", "0", "1")}


def test_listed_but_absent_files_and_unlisted_files_are_failed_items(lay: Lay) -> None:
    root = lay("a.jpg", "unlisted.jpg", contents={"labels.csv": "gone.jpg,dog\na.jpg,cat\nalso_gone,dog\n"})
    found = scan(root, SourceOptions())
    assert {item.source: item.problem for item in found.items} == {
        "a.jpg": None,
        "also_gone": Reason.MISSING_FILE,
        "gone.jpg": Reason.MISSING_FILE,
        "unlisted.jpg": Reason.MISSING_LABEL,
    }
    assert labels(found)["gone.jpg"] == "dog"


def test_a_first_line_that_is_taken_as_header_is_told(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"labels.csv": "slide,grade\na.jpg,3\n"}), SourceOptions())
    assert labels(found) == {"a.jpg": "3"}
    assert "labels.csv: the first line (slide, grade) is taken as the header" in found.notes


def test_a_name_without_extension_stands_for_all_its_images(lay: Lay) -> None:
    found = scan(lay("twin.jpg", "twin.png", contents={"labels.csv": "twin,x\n"}), SourceOptions())
    assert labels(found) == {"twin.jpg": "x", "twin.png": "x"}


def test_further_columns_make_the_list_a_table(lay: Lay) -> None:
    content = "id,file,patient,class,age\n007,a.jpg,p1,cat,41\n008,b.jpg,p2,dog,\n"
    found = scan(lay("a.jpg", "b.jpg", contents={"labels.csv": content}), SourceOptions(group_column="patient"))
    assert labels(found) == {"a.jpg": "cat", "b.jpg": "dog"}
    assert [item.group for item in found.items] == ["p1", "p2"]
    assert [item.columns for item in found.items] == [{"id": "007", "age": 41}, {"id": "008", "age": None}]
    assert list(found.columns) == ["id", "age"]


def test_further_columns_without_a_header_are_called_by_their_place(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"labels.csv": "a.jpg,cat,0.5\n"}), SourceOptions())
    assert found.items[0].columns == {"column_3": 0.5}


def test_lists_per_split(lay: Lay) -> None:
    root = lay(
        "train/images/deep/a.jpg",
        "train/images/b.jpg",
        "val/c.jpg",
        "test/images/d.jpg",
        contents={"train/labels.txt": "deep/a.jpg 1\nb 2\ngone 3\n", "val/labels.csv": "c,4\n"},
    )
    found = scan(root, SourceOptions())
    assert found.layout == "split folders with labels lists"
    assert {item.source: (item.split, item.label, item.problem) for item in found.items} == {
        "test/images/d.jpg": ("test", None, Reason.MISSING_LABEL),
        "train/gone": ("train", "3", Reason.MISSING_FILE),
        "train/images/b.jpg": ("train", "2", None),
        "train/images/deep/a.jpg": ("train", "1", None),
        "val/c.jpg": ("val", "4", None),
    }
    assert found.splits_declared


def test_a_line_that_leads_outside_stays_in_its_lists_split(lay: Lay) -> None:
    root = lay("train/a.jpg", "val/b.jpg", contents={"train/labels.txt": "a.jpg 1\n../../../x.jpg 2\n"})
    outside = scan(root, SourceOptions()).items[0]
    assert (outside.source, outside.split, outside.problem) == ("../../../x.jpg", "train", Reason.OUTSIDE_SOURCE)


def test_one_list_above_split_folders(lay: Lay) -> None:
    content = "train/a.jpg,cat\nval/b.jpg,dog\ntrain/gone.jpg,cat\n"
    found = scan(lay("train/a.jpg", "val/b.jpg", contents={"labels.csv": content}), SourceOptions())
    assert {item.source: item.split for item in found.items} == {
        "train/a.jpg": "train",
        "train/gone.jpg": "train",
        "val/b.jpg": "val",
    }


def test_columns_of_several_lists_have_one_type(lay: Lay) -> None:
    root = lay(
        "train/a.jpg",
        "val/b.jpg",
        contents={"train/labels.csv": "name,label,x\na,c,1\n", "val/labels.csv": "name,label,x,y\nb,c,0.5,z\n"},
    )
    found = scan(root, SourceOptions())
    assert [item.columns for item in found.items] == [{"x": 1.0}, {"x": 0.5, "y": "z"}]
    assert isinstance(found.items[0].columns["x"], float)
    assert list(found.columns) == ["x", "y"]


def test_a_list_of_class_names_among_class_folders_is_no_labels_list(lay: Lay) -> None:
    found = scan(lay("cat/a.jpg", "dog/b.jpg", contents={"labels.txt": "cat\ndog\n"}), SourceOptions())
    assert found.layout == "class folders"
    assert [(thing.path, thing.why) for thing in found.unknown] == [("labels.txt", "names none of the files here")]


def test_a_list_that_names_no_file_of_a_flat_folder_is_a_usage_error(lay: Lay) -> None:
    with pytest.raises(UsageError, match=r"labels\.csv: names none of the files beside it"):
        scan(lay("a.jpg", contents={"labels.csv": "x.jpg,1\ny.jpg,2\n"}), SourceOptions())


def test_of_two_lists_one_is_used_and_the_other_reported(lay: Lay) -> None:
    root = lay("a.jpg", contents={"labels.txt": "a.jpg dog\n", "labels.csv": "a.jpg,cat\n"})
    found = scan(root, SourceOptions())
    assert labels(found) == {"a.jpg": "cat"}
    assert [(thing.path, thing.why) for thing in found.unknown] == [("labels.txt", "labels.csv gives the labels")]


def test_an_empty_list_is_no_labels_list(lay: Lay) -> None:
    found = scan(lay("cat/a.jpg", "dog/b.jpg", contents={"labels.csv": " \n"}), SourceOptions())
    assert found.layout == "class folders"


def test_a_list_goes_before_class_folders(lay: Lay) -> None:
    found = scan(
        lay("cat/a.jpg", "dog/b.jpg", contents={"labels.csv": "cat/a.jpg,1\ndog/b.jpg,2\n"}), SourceOptions()
    )
    assert found.layout == "labels list"
    assert labels(found) == {"cat/a.jpg": "1", "dog/b.jpg": "2"}


def test_repeated_lines_are_items_and_noted(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"labels.txt": "a.jpg 1\na.jpg 2\n"}), SourceOptions())
    assert [item.label for item in found.items] == ["1", "2"]
    assert "1 row names a file of an earlier row; each is an item of its own" in found.notes
