"""The fast walk gives what pydicom gives, for whole and for damaged files, or leaves the file to pydicom."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.filereader import data_element_generator
from pydicom.tag import BaseTag

from shardforge.codecs.dicom.item_bounds import UNDEFINED
from shardforge.codecs.dicom.parse import parse_dicom
from shardforge.codecs.dicom.part10 import Start, read_start
from shardforge.codecs.dicom.syntaxes import DEFLATED_DATASETS
from shardforge.codecs.dicom.walk import PER_FRAME, PIXEL_TAGS, Walked, walk
from shardforge.errors import SampleError
from tests.codecs.dicom.dicom_files import explicit, meta

# One that is always there, a text, a number, a sequence that is often of undefined length, private data, functional
# groups, and one that no file has.
WANTED = frozenset((0x00080016, 0x00100010, 0x00280010, 0x00081140, 0x00291010, 0x52009229, 0x52009230, 0x00990001))
HEADER = 4000
"""Bytes of a file that mutations touch: nearly all headers end within."""
MUTANTS = 2


def by_pydicom(data: bytes, start: Start, tags: frozenset[int] | None) -> tuple[Walked, bool]:
    """The elements, and whether the pixel data were reached."""
    implicit = is_implicit(data, start)
    file = io.BytesIO(data)
    file.seek(start.offset)
    pixels: list[tuple[int, str | None, int, int]] = []

    def stop(tag: BaseTag, vr: str | None, length: int) -> bool:
        if tag in PIXEL_TAGS:
            pixels.append((int(tag), vr, file.tell(), length))
        return bool(pixels)

    elements: dict[BaseTag, Any] = {}
    wanted: Any = None if tags is None else list(tags)
    for element in data_element_generator(file, implicit, True, stop, specific_tags=wanted):
        elements[element.tag] = element
    if not pixels:
        return Walked(elements, 0, None, 0, None), False
    tag, vr, at, length = pixels[0]
    return Walked(elements, tag, vr, at, None if length == UNDEFINED else length), True


def is_implicit(data: bytes, start: Start) -> bool:
    return not data[start.offset + 4 : start.offset + 6].isupper()


def agreed(data: bytes, tags: frozenset[int] | None) -> bool:
    """Whether the walk reached the pixel data; then it has to agree with pydicom."""
    try:
        start = read_start(data, len(data))
    except SampleError:
        return False
    if not start.little or start.transfer_syntax in DEFLATED_DATASETS:
        return False
    found = walk(data, start.offset, tags, implicit=is_implicit(data, start))
    if found is None:
        return False
    expected, reached = by_pydicom(data, start, tags)
    assert reached
    assert replace(found, elements={}) == replace(expected, elements={})
    assert plain(read_as(found.elements, expected.elements)) == plain(expected.elements)
    return True


def read_as(found: Mapping[BaseTag, Any], expected: Mapping[BaseTag, Any]) -> dict[BaseTag, Any]:
    """The walk leaves the groups of frames unread that pydicom has to read to find their end."""
    elements = dict(found)
    if isinstance(expected.get(BaseTag(PER_FRAME)), DataElement):
        elements[BaseTag(PER_FRAME)] = Dataset({BaseTag(PER_FRAME): elements[BaseTag(PER_FRAME)]})[PER_FRAME]
    return elements


def plain(elements: Mapping[BaseTag, Any], *, inside: bool = False) -> list[Any]:
    """Elements in order, sequences as the raw elements of their items: comparing datasets would convert values. Where
    those stood counts from the start of the file or of the sequence, and is left out."""
    return [
        (element.tag, element.VR, [plain(item._dict, inside=True) for item in element.value])
        if isinstance(element, DataElement)
        else tuple(element._replace(value_tell=0) if inside else element)
        for element in elements.values()
    ]


def files(corpus: Path) -> Iterator[bytes]:
    for path in sorted((corpus / "dicom").rglob("*")):
        if path.is_file() and path.suffix != ".zip" and path.stat().st_size < 1 << 20:
            yield path.read_bytes()


@pytest.mark.parametrize("tags", [WANTED, None], ids=["some", "all"])
def test_the_walk_agrees_with_pydicom_on_every_corpus_file(corpus: Path, tags: frozenset[int] | None) -> None:
    walked = [agreed(data, tags) for data in files(corpus)]
    assert sum(walked) > 0.8 * len(walked)


def test_the_walk_agrees_with_pydicom_on_damaged_files(corpus: Path) -> None:
    draw = random.Random(0)
    walked = 0
    for data in files(corpus):
        for _ in range(MUTANTS):
            mutant = bytearray(data[: 1 << 16])
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(128, max(129, min(HEADER, len(mutant))))
                if at < len(mutant):
                    mutant[at] = draw.choice((0, 1, 0x10, 0x41, 0xFF, draw.randrange(256)))
            if draw.random() < 0.2:
                del mutant[draw.randrange(len(mutant) + 1) :]
            walked += agreed(bytes(mutant), draw.choice((WANTED, None)))
    assert walked > 200


def test_sequences_of_undefined_length_are_read_and_passed_over() -> None:
    item = b"\xfe\xff\x00\xe0\xff\xff\xff\xff" + explicit(0x00080100, "SH", "T") + b"\xfe\xff\x0d\xe0\0\0\0\0"
    ends = b"\xfe\xff\xdd\xe0\0\0\0\0"
    body = explicit(0x00081140, "SQ", item + ends, UNDEFINED) + explicit(0x00280010, "US", [7])
    data = meta() + body + explicit(0x7FE00010, "OW", b"\1\2")
    start = read_start(data, len(data))
    found = walk(data, start.offset, {0x00280010}, implicit=False)
    assert found is not None
    assert [int(tag) for tag in found.elements] == [0x00280010]
    assert (found.start, found.length) == (len(data) - 2, 2)
    assert agreed(data, None)


def test_what_is_cut_before_the_pixel_data_is_left_to_pydicom() -> None:
    data = meta() + explicit(0x00280010, "US", [7]) + explicit(0x7FE00010, "OW", b"\1\2")
    start = read_start(data, len(data))
    for end in range(start.offset, len(data) - 2):
        assert walk(data[:end], start.offset, None, implicit=False) is None


def test_a_whole_head_gives_what_a_short_one_gives() -> None:
    data = meta() + explicit(0x00291010, "OB", bytes(100_000)) + explicit(0x00280010, "US", [7])
    data += explicit(0x7FE00010, "OW", b"\1\2")
    some = [parse_dicom(io.BytesIO(data), tags=[0x00280010], max_inflated=1, size=len(data), head_size=size)
            for size in (1000, len(data))]  # fmt: skip
    assert some[0].pixels == some[1].pixels
    assert some[0].dataset == some[1].dataset
