"""Files that share a stem become fields of one sample."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Scan
from shardforge.sources.scan import SourceOptions, scan

Lay = Callable[..., Path]


def fields(found: Scan) -> dict[str, dict[str, str]]:
    return {
        item.source: {name: file.path for name, file in item.files.items() if name != "image"} for item in found.items
    }


def unknown(found: Scan) -> dict[str, str]:
    return {thing.path: thing.why for thing in found.unknown}


def test_siblings_with_one_stem_are_fields_of_one_sample(lay: Lay) -> None:
    root = lay("d/a.jpg", "d/a.mask.png", contents={"d/a.json": "{}", "d/a.txt": "x", "d/a.npy": "n"})
    found = scan(root, SourceOptions())
    expected = {"json": "d/a.json", "mask.png": "d/a.mask.png", "npy": "d/a.npy", "txt": "d/a.txt"}
    assert fields(found) == {"d/a.jpg": expected}
    assert found.unknown == []


def test_stems_match_exactly_and_extensions_in_any_case(lay: Lay) -> None:
    found = scan(lay("a.JPG", contents={"a.JSON": "{}", "A.txt": "x"}), SourceOptions())
    assert fields(found) == {"a.JPG": {"json": "a.JSON"}}
    assert unknown(found) == {"A.txt": "no image with this name"}


def test_siblings_stay_in_their_folder(lay: Lay) -> None:
    found = scan(lay("x/a.jpg", contents={"y/a.txt": "x", "a.txt": "x"}), SourceOptions())
    assert fields(found) == {"x/a.jpg": {}}
    assert len(found.unknown) == 2


def test_two_images_with_one_stem_are_two_samples_and_share_sidecars(lay: Lay) -> None:
    found = scan(lay("twin.jpg", "twin.png", contents={"twin.txt": "both"}), SourceOptions())
    assert fields(found) == {"twin.jpg": {"txt": "twin.txt"}, "twin.png": {"txt": "twin.txt"}}


def test_a_dotted_name_is_its_own_image_unless_declared(lay: Lay) -> None:
    root = lay("a.jpg", "a.b.jpg", "a.depth.png", contents={"a.b.json": "{}"})
    plain = scan(root, SourceOptions())
    assert fields(plain) == {"a.b.jpg": {"json": "a.b.json"}, "a.depth.png": {}, "a.jpg": {}}
    declared = scan(root, SourceOptions(fields={"depth.png": "optional"}))
    assert fields(declared) == {"a.b.jpg": {"json": "a.b.json"}, "a.jpg": {"depth.png": "a.depth.png"}}


def test_a_sidecar_without_an_image_is_unknown(lay: Lay) -> None:
    found = scan(lay("a.jpg", "b.mask.png", contents={"c.json": "{}"}), SourceOptions())
    assert list(fields(found)) == ["a.jpg"]
    assert unknown(found) == dict.fromkeys(["b.mask.png", "c.json"], "no image with this name")


def test_the_second_file_for_one_field_is_reported(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"a.JSON": "{}", "a.json": "{}"}), SourceOptions())
    assert fields(found) == {"a.jpg": {"json": "a.JSON"}}
    assert unknown(found) == {"a.json": "a.JSON gives this field already"}


def test_files_recognised_by_content_have_sidecars_too(lay: Lay) -> None:
    found = scan(lay("1.2.840", "1.2.841", contents={"1.2.840.json": "{}", "1.2.841.json": "{}"}), SourceOptions())
    assert fields(found) == {"1.2.840": {"json": "1.2.840.json"}, "1.2.841": {"json": "1.2.841.json"}}


def test_a_cls_file_gives_the_label_if_nothing_else_does(lay: Lay) -> None:
    flat = scan(lay("a.jpg", "b.jpg", contents={"a.cls": " 7\n"}), SourceOptions())
    assert flat.layout == "flat folder"
    assert [(item.label, item.problem) for item in flat.items] == [("7", None), (None, Reason.MISSING_LABEL)]
    assert fields(flat) == {"a.jpg": {}, "b.jpg": {}}
    assert flat.unknown == []


def test_a_cls_file_in_a_class_folder_is_reported(lay: Lay) -> None:
    found = scan(lay("cat/a.jpg", "cat/a.png", "dog/b.jpg", contents={"cat/a.cls": "lion"}), SourceOptions())
    assert [item.label for item in found.items] == ["cat", "cat", "dog"]
    assert unknown(found) == {"cat/a.cls": "the label comes from elsewhere"}


def test_a_cls_file_may_hold_several_classes(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"a.cls": "cat; dog;"}), SourceOptions(label_separator=";"))
    assert found.items[0].label == ("cat", "dog")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 70_000], ids=["not UTF-8", "too long"])
def test_a_bad_cls_file_fails_its_item(lay: Lay, content: bytes) -> None:
    found = scan(lay("a.jpg", "b.jpg", contents={"a.cls": content, "b.cls": "x"}), SourceOptions())
    assert [item.problem for item in found.items] == [Reason.BAD_SIDECAR, None]
