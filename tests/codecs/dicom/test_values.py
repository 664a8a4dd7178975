"""Values are read from what the file has, and from what pydicom has made of it since."""

from __future__ import annotations

import io

import pytest
from pydicom.dataset import Dataset

from shardforge.codecs.dicom.parse import parse_dicom
from shardforge.codecs.dicom.values import content, items, numbers, text
from tests.codecs.dicom.dicom_files import explicit, meta, sequence

SPACING, ROWS, CLASS, WINDOWS, REFERENCES = 0x00280030, 0x00280010, 0x00080016, 0x00281050, 0x00081140


def dataset(*elements: bytes) -> Dataset:
    data = meta() + b"".join(elements)
    return parse_dicom(io.BytesIO(data), max_inflated=0, size=len(data)).dataset


def touched(of: Dataset) -> Dataset:
    """Every value converted by pydicom, as a user of the dataset would cause it."""
    for tag in list(of.keys()):
        of[tag]
    return of


@pytest.mark.parametrize("convert", [False, True])
def test_numbers_and_texts_are_the_same_before_and_after_conversion(convert: bool) -> None:
    read = dataset(
        explicit(CLASS, "UI", "1.2.3"),
        explicit(0x00080008, "CS", "ORIGINAL\\PRIMARY "),
        sequence(REFERENCES, explicit(ROWS, "US", [7])),
        explicit(ROWS, "US", [5]),
        explicit(SPACING, "DS", "1.5\\ 2 "),
        explicit(0x00281101, "US", [1, 2, 65535]),
        explicit(WINDOWS, "DS", ""),
    )
    of = touched(read) if convert else read
    assert text(of, CLASS) == "1.2.3"
    assert text(of, 0x00080008) == "ORIGINAL"
    assert numbers(of, ROWS, "US").whole(1) == (5,)
    assert numbers(of, SPACING, "DS").whole(2) == (1.5, 2)
    assert numbers(of, WINDOWS, "DS").values == ()
    assert [numbers(item, ROWS, "US").first for item in items(of, REFERENCES)] == [7]
    found = content(of, 0x00281101)
    assert found is not None
    assert found[:2] == (b"\1\0\2\0\xff\xff", True)


def test_what_is_absent_or_unreadable_is_empty() -> None:
    # An element without a value, of a VR that there is not.
    odd = b"\x08\0\x16\0U\0\0\0"
    first = explicit(0x00080008, "CS", "ORIGINAL")
    of = dataset(first, odd, explicit(SPACING, "DS", "a\\b"), explicit(REFERENCES, "SQ", b"\1\2\3\4\5\6"))
    assert (text(of, CLASS), text(of, 0x00080060)) == ("", "")
    assert numbers(of, CLASS, "DS").values == ()
    assert numbers(of, ROWS, "US").values == ()
    assert (numbers(of, SPACING, "DS").values, numbers(of, SPACING, "DS").clean) == ((None, None), False)
    assert items(of, REFERENCES) == []
    assert items(of, ROWS) == []
    assert content(of, ROWS) is None


def test_implicit_datasets_have_the_vr_of_the_dictionary() -> None:
    body = b"\x08\0\x16\0\4\0\0\0" + b"1.2\0" + b"\x28\0\x10\0\2\0\0\0\x09\0" + b"\x28\0\x30\0\4\0\0\0" + b"1\\2 "
    of = parse_dicom(io.BytesIO(body), max_inflated=0, size=len(body)).dataset
    assert numbers(of, ROWS, "US").first == 9
    assert numbers(of, SPACING, "DS").whole(2) == (1, 2)
