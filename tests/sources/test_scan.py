"""Which layout a source has, and the splits and labels that folders give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardforge.errors import UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Scan
from shardforge.sources.scan import SourceOptions, scan

Lay = Callable[..., Path]


def told(found: Scan) -> dict[str, tuple[object, object]]:
    return {item.source: (item.split, item.label) for item in found.items}


def test_class_folders_give_the_first_folder_as_label(lay: Lay) -> None:
    found = scan(lay("cat/a.jpg", "cat/deep/er/b.jpg", "7/c.jpg"), SourceOptions())
    assert found.layout == "class folders"
    assert told(found) == {"7/c.jpg": (None, "7"), "cat/a.jpg": (None, "cat"), "cat/deep/er/b.jpg": (None, "cat")}
    assert not found.splits_declared
    assert found.notes == []


def test_files_beside_class_folders_lack_a_label(lay: Lay) -> None:
    found = scan(lay("cat/a.jpg", "dog/a.jpg", "stray.jpg"), SourceOptions())
    assert [item.problem for item in found.items] == [None, None, Reason.MISSING_LABEL]


def test_class_folders_in_both_normal_forms_are_one_class(lay: Lay) -> None:
    found = scan(lay("é/a.jpg", "e\u0301/b.jpg"), SourceOptions())
    assert {item.label for item in found.items} == {"é"}


def test_a_single_class_folder_is_noted(lay: Lay) -> None:
    assert scan(lay("images/a.jpg"), SourceOptions()).notes == ["there is only one class folder, 'images'"]


def test_a_flat_folder_has_no_labels(lay: Lay) -> None:
    found = scan(lay("a.jpg", "b.jpg"), SourceOptions())
    assert found.layout == "flat folder"
    assert [(item.label, item.problem) for item in found.items] == [(None, None)] * 2


def test_split_folders_keep_their_own_lower_case_names(lay: Lay) -> None:
    found = scan(lay("Train/cat/a.jpg", "valid/cat/deep/b.jpg", "test/dog/c.jpg"), SourceOptions())
    assert found.layout == "split folders"
    assert told(found) == {
        "Train/cat/a.jpg": ("train", "cat"),
        "test/dog/c.jpg": ("test", "dog"),
        "valid/cat/deep/b.jpg": ("valid", "cat"),
    }
    assert found.splits_declared


@pytest.mark.parametrize("name", ["val", "valid", "validation", "test", "dev"])
def test_known_names_of_splits(lay: Lay, name: str) -> None:
    assert scan(lay("train/x/a.jpg", f"{name}/x/b.jpg"), SourceOptions()).splits_declared


def test_split_folders_without_classes_have_no_labels(lay: Lay) -> None:
    found = scan(lay("train/a.jpg", "val/b.jpg"), SourceOptions())
    assert found.layout == "split folders without class folders"
    assert told(found) == {"train/a.jpg": ("train", None), "val/b.jpg": ("val", None)}
    assert {item.problem for item in found.items} == {None}


def test_folders_without_images_do_not_decide_the_layout(lay: Lay) -> None:
    found = scan(lay("train/x/a.jpg", "val/x/b.jpg", contents={"docs/read.pdf": "x"}), SourceOptions())
    assert found.layout == "split folders"
    assert [thing.path for thing in found.unknown] == ["docs/read.pdf"]


def test_without_train_or_with_another_folder_they_are_classes(lay: Lay, source: Path) -> None:
    found = scan(lay("test/a.jpg", "val/b.jpg"), SourceOptions())
    assert told(found) == {"test/a.jpg": (None, "test"), "val/b.jpg": (None, "val")}
    mixed = scan(lay("train/c.jpg", "extra/d.jpg"), SourceOptions())
    assert mixed.layout == "class folders"
    assert mixed.notes == ["test, train, val: not taken as splits, because 'extra' is no split"]


def test_columns_need_a_table(lay: Lay) -> None:
    with pytest.raises(UsageError, match="'patient' names a column, but there is no table"):
        scan(lay("cat/a.jpg"), SourceOptions(group_column="patient"))


def test_scanning_twice_gives_the_same(lay: Lay) -> None:
    root = lay("b/a.jpg", "a/b.jpg", "a/a.jpg", contents={"a/a.txt": "x", "z.pdf": "x"})
    assert scan(root, SourceOptions()) == scan(root, SourceOptions())


def test_sizes_and_times_are_those_of_the_files(lay: Lay) -> None:
    root = lay(contents={"a.jpg": b"12345"})
    file = scan(root, SourceOptions()).items[0].files["image"]
    assert (file.size, file.mtime_ns) == (5, (root / "a.jpg").stat().st_mtime_ns)
