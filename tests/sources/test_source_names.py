"""Sources are valid Unicode, normalised, sorted, and one per file."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from shardforge.sources.item import Item, SourceFile
from shardforge.sources.names import sort_items, source_name
from shardforge.sources.scan import SourceOptions, scan

Lay = Callable[..., Path]


def test_undecodable_names_work_and_are_told_in_valid_unicode(lay: Lay) -> None:
    found = scan(lay(b"caf\xe9.jpg", b"d\xe9j\xe0/x.jpg"), SourceOptions())
    assert [item.source for item in found.items] == ["caf\\xe9.jpg", "d\\xe9j\\xe0/x.jpg"]
    assert [item.label for item in found.items] == [None, "d\\xe9j\\xe0"]
    for item in found.items:
        assert (Path(lay()) / item.files["image"].path).is_file()


def test_unknown_files_are_told_in_valid_unicode(lay: Lay) -> None:
    found = scan(lay("a.jpg", contents={"caf\udce9.pdf": "x"}), SourceOptions())
    assert [thing.path for thing in found.unknown] == ["caf\\xe9.pdf"]


def test_names_that_differ_by_normalisation_only_get_sources_of_their_own(lay: Lay) -> None:
    composed, decomposed = unicodedata.normalize("NFC", "é.jpg"), unicodedata.normalize("NFD", "é.jpg")
    found = scan(lay(composed, decomposed), SourceOptions())
    by_source = {item.source: item.files["image"].path for item in found.items}
    assert by_source == {composed: composed, "e\\xcc\\x81.jpg": decomposed}


def test_an_escaped_name_that_exists_as_a_file_keeps_its_source(lay: Lay) -> None:
    found = scan(lay(b"\xe9.jpg", rb"\xe9.jpg", "é.jpg", "e\u0301.jpg", rb"e\xcc\x81.jpg"), SourceOptions())
    by_path = {item.files["image"].path: item.source for item in found.items}
    assert by_path[r"\xe9.jpg"] == r"\xe9.jpg"
    assert by_path[r"e\xcc\x81.jpg"] == r"e\xcc\x81.jpg"
    assert len(set(by_path.values())) == 5


def test_items_are_sorted_by_code_point(lay: Lay) -> None:
    names = ["a/1.jpg", "a-b/1.jpg", "Z/1.jpg", "a/10.jpg", "a/2.jpg", "ä/1.jpg", "画/1.jpg"]
    found = scan(lay(*names), SourceOptions())
    assert [item.source for item in found.items] == sorted(names)


_BYTES = st.lists(st.sampled_from([b"a", b"\\", b"x", b"e", b"9", b"~", b"2", b"\xe9", b"e\xcc\x81", b"\xc3\xa9"]))


@given(st.sets(_BYTES.map(b"".join), min_size=1, max_size=30), st.randoms())
def test_any_set_of_names_gets_unique_sources_whatever_the_order(names, random) -> None:  # type: ignore[no-untyped-def]
    def items() -> list[Item]:
        paths = [name.decode("utf-8", "surrogateescape") for name in names]
        random.shuffle(paths)
        return [Item(source_name(path), {"image": SourceFile(path, 0, 0)}) for path in paths]

    one, other = items(), items()
    sort_items(one)
    sort_items(other)
    assert one == other
    sources = [item.source for item in one]
    assert sources == sorted(set(sources))
    for source in sources:
        assert unicodedata.is_normalized("NFC", source.encode().decode())


def test_the_corpus_of_names_gives_one_item_per_file(corpus: Path) -> None:
    lines = (corpus / "expected.jsonl").read_text(encoding="utf-8").splitlines()
    prefix = "images/names/"
    listed = [json.loads(line)["path"].removeprefix(prefix) for line in lines if f'"{prefix}' in line]
    found = scan(corpus / "images" / "names", SourceOptions())
    assert found.unknown == []
    assert sorted(item.files["image"].path for item in found.items) == sorted(listed)
    assert [item.source for item in found.items] == sorted({unicodedata.normalize("NFC", name) for name in listed})
    assert {item.source for item in found.items if "twin" in item.source} == {"twin.jpg", "twin.png"}
