"""Values of elements: the short ways to the first text and to numbers give what the long ways give."""

from __future__ import annotations

import pytest
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.tag import BaseTag

from shardforge.sources.dicom.values import Values

TAG = 0x00180050


def values(raw: bytes | None, vr: str | None) -> Values:
    element = RawDataElement(BaseTag(TAG), vr, len(raw or b""), raw, 0, vr is None, True)
    return Values(Dataset({BaseTag(TAG): element}))


@pytest.mark.parametrize("raw", [b"", None, b" A \\B", b"\\B", b"A\0", b"\t", b"\xc4\\B", b"1\\2", b"A" * 300])
@pytest.mark.parametrize("vr", ["LO", "DS", None])
def test_a_text_is_the_first_of_all(raw: bytes | None, vr: str | None) -> None:
    found = values(raw, vr)
    assert found.text(TAG) == next(iter(found.texts(TAG)), "")


@pytest.mark.parametrize(
    ("raw", "numbers"),
    [
        (b"2.5 ", (2.5,)),
        (b" 1\\-2e1\\.5", (1.0, -20.0, 0.5)),
        (b"1\\", ()),
        (b"nan", ()),
        (b"1,5", ()),
        (b"", ()),
        (b"\xb9", ()),
        (b"1e999", ()),
        (None, ()),
    ],
)
def test_decimal_strings_are_numbers_or_nothing(raw: bytes | None, numbers: tuple[float, ...]) -> None:
    found = values(raw, "DS")
    assert found.numbers(TAG) == numbers
    assert found.number(TAG) == (numbers[0] if numbers else None)
    assert found.number(TAG + 1) is None
