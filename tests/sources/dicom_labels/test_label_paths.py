"""Which file a table's path means."""

from __future__ import annotations

import pytest

from shardforge.sources.dicom_labels.paths import PathIndex


@pytest.mark.parametrize(
    "name",
    [
        "train/patient00001/study1/view1_frontal.dcm",
        "./train/patient00001/study1/view1_frontal.dcm",
        "CheXpert-v1.0-small/train/patient00001/study1/view1_frontal.jpg",
        "C:\\data\\train\\patient00001\\study1\\view1_frontal.dcm",
        "patient00001/study1/view1_frontal.png",
        "../data/train/patient00001/study1/view1_frontal.dcm",
    ],
    ids=["same", "dot", "chexpert", "backslashes", "further-in", "further-out"],
)
def test_paths_may_begin_at_different_folders(name: str) -> None:
    path = "train/patient00001/study1/view1_frontal.dcm"
    index = PathIndex([path, "train/patient00002/study1/view1_frontal.dcm"])
    assert index.find(name) == (path, False)


def test_a_file_that_is_not_there_never_borrows_a_neighbours_name() -> None:
    index = PathIndex(["train/patient00001/study1/view1_frontal.dcm"])
    assert index.find("CheXpert-v1.0-small/train/patient00002/study1/view1_frontal.jpg") == (None, False)
    assert index.find("CheXpert-v1.0-small/valid/patient00001/study1/view1_frontal.jpg") == (None, False)


def test_the_longest_path_wins() -> None:
    index = PathIndex(["a/1.dcm", "b/a/1.dcm", "1.dcm"])
    assert index.find("x/b/a/1.dcm") == ("b/a/1.dcm", False)
    assert index.find("a/1.dcm") == ("a/1.dcm", False)
    assert index.find("c/1.dcm") == ("1.dcm", False)


def test_an_end_that_several_files_share_means_none() -> None:
    index = PathIndex(["a/1.dcm", "b/1.dcm"])
    assert index.find("1.dcm") == (None, True)
    assert index.find("1.png") == (None, True)


def test_the_extension_counts_where_it_can() -> None:
    index = PathIndex(["a/1.dcm", "a/1"])
    assert index.find("a/1.dcm") == ("a/1.dcm", False)
    assert index.find("a/1") == ("a/1", False)
    assert index.find("a/1.jpg") == (None, True)


def test_numbers_of_a_uid_are_no_extension() -> None:
    index = PathIndex(["1.2.3.dcm", "1.2.4.dcm"])
    assert index.find("x/1.2.3.jpg") == ("1.2.3.dcm", False)
    assert index.find("1.2.4") == ("1.2.4.dcm", False)
    assert index.find("1.2.5") == (None, False)


def test_a_file_reached_from_two_paths_is_contested() -> None:
    index = PathIndex(["view1.dcm", "view2.dcm"])
    index.find("patient1/view1.jpg")
    index.find("patient1/view1.jpg")
    index.find("patient1/view2.jpg")
    assert index.contested == set()
    index.find("patient2/view1.jpg")
    assert index.contested == {"view1.dcm"}
