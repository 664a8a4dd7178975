"""Bounds what sequences of defined length may hold: pydicom reads them when they are first asked for, all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydicom.datadict import dictionary_VR
from pydicom.dataelem import RawDataElement
from pydicom.tag import BaseTag

MOST_ITEMS = 300_000
"""Items of defined length in one sequence, those of the sequences inside it included: an object of 10,000 frames has
up to 170,000."""
MOST_BYTES = 32 * 2**20
"""Length of one sequence; of 10,000 frames each may take 3 KiB."""

# Shorter values cost little each, and the work on what they stand in has been counted.
_SHORT = 256
_ITEM = {True: b"\xfe\xff\x00\xe0", False: b"\xff\xfe\xe0\x00"}


def endless_sequences(elements: Mapping[BaseTag, Any]) -> list[BaseTag]:
    """Tags of the sequences beyond the bounds. Items are counted by their tags in the bytes, not followed."""
    return [tag for tag, element in elements.items() if _is_endless(element)]


def _is_endless(element: Any) -> bool:
    items = size = 0
    for value, little in _unread(element):
        items += value.count(_ITEM[little])
        size += len(value)
        if items > MOST_ITEMS or size > MOST_BYTES:
            return True
    return False


def _unread(element: Any) -> Iterator[tuple[bytes, bool]]:
    """Values of the sequences in an element that are still to be read, and whether they are little endian."""
    todo = [element]
    while todo:
        one = todo.pop()
        if isinstance(one, RawDataElement):
            if one.value is not None and len(one.value) > _SHORT and _is_sequence(one):
                yield one.value, one.is_little_endian
        elif one.VR == "SQ":
            for item in one.value:
                todo.extend(item._dict.values())


def _is_sequence(element: RawDataElement) -> bool:
    """Private ones whose VR is not stated are never asked for."""
    if element.VR is not None:
        return element.VR == "SQ"
    try:
        return dictionary_VR(element.tag) == "SQ"
    except KeyError:
        return False
