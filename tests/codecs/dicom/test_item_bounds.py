"""Items of sequences are found where pydicom writes them, whatever lengths are stated."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.filebase import DicomBytesIO
from pydicom.filereader import read_dataset
from pydicom.filewriter import write_sequence
from pydicom.sequence import Sequence

from shardforge.codecs.dicom.item_bounds import item_bounds
from tests.codecs.dicom.dicom_files import UNDEFINED, explicit

ITEM, ITEM_END, SEQUENCE_END = (b"\xfe\xff" + end for end in (b"\x00\xe0", b"\x0d\xe0", b"\xdd\xe0"))


@st.composite
def datasets(draw: st.DrawFn, depth: int = 0) -> Dataset:
    made = Dataset()
    if draw(st.booleans()):
        made.Rows = draw(st.integers(0, 65535))
    if draw(st.booleans()):
        made.SeriesDescription = draw(st.text("abc", min_size=1, max_size=9))
    if draw(st.booleans()):
        made.add_new(0x00091010, "OB", draw(st.binary(min_size=1, max_size=20).map(lambda half: half + half)))
    if depth < 3 and draw(st.booleans()):
        made.ReferencedImageSequence = draw(sequences(depth + 1))
        made["ReferencedImageSequence"].is_undefined_length = draw(st.booleans())
    made.is_undefined_length_sequence_item = draw(st.booleans())
    return made


def sequences(depth: int) -> st.SearchStrategy[Sequence]:
    return st.lists(datasets(depth), max_size=4).map(Sequence)


def content(dataset: Dataset) -> tuple[object, ...]:
    private = dataset[0x00091010].value if 0x00091010 in dataset else None
    inside = [content(item) for item in dataset.get("ReferencedImageSequence", [])]
    return dataset.get("Rows"), dataset.get("SeriesDescription"), private, inside


@given(items=sequences(0), implicit=st.booleans(), delimited=st.booleans(), before=st.binary(max_size=9))
@settings(deadline=None)
def test_items_lie_where_pydicom_writes_them(items: Sequence, implicit: bool, delimited: bool, before: bytes) -> None:
    file = DicomBytesIO()
    file.is_implicit_VR, file.is_little_endian = implicit, True
    write_sequence(file, DataElement(0x52009230, "SQ", items), ["iso8859"])
    written = file.getvalue() + (SEQUENCE_END + bytes(4) if delimited else b"")
    behind = b"\x28\x00\x10\x00US\x02\x00\x01\x00" if delimited else b""
    found = item_bounds(before + written + behind, len(before), implicit=implicit)
    assert found is not None
    bounds, end = found
    assert end == len(before) + len(written)
    read = [read_dataset(io.BytesIO((before + written)[a:b]), implicit, True, b - a) for a, b in bounds]
    assert [content(item) for item in read] == [content(item) for item in items]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(ITEM + b"\xff" * 4, id="cut in an item"),
        pytest.param(ITEM + b"\x09\0\0\0" + b"\x28\0\x10\0", id="shorter than it says"),
        pytest.param(b"\x28\0\x10\0US\x02\0\x01\0", id="an element where an item belongs"),
        pytest.param(ITEM + b"\xff" * 4 + b"\x28\0\x10\0\x01\x02\x02\0\x01\0" + ITEM_END + bytes(4), id="no VR"),
        pytest.param(ITEM + b"\xff" * 4 + explicit(0x7FE00010, "OB", b"", UNDEFINED), id="fragments"),
        pytest.param((ITEM + b"\xff" * 4 + explicit(0x00081140, "SQ", b"", UNDEFINED)) * 40, id="too deep"),
        pytest.param((ITEM + bytes(4)) * 2_000_001, id="endless"),
    ],
)
def test_what_is_unusual_is_left_alone(data: bytes) -> None:
    assert item_bounds(data, 0, implicit=False) is None
