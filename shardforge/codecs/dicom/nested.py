"""Bounds what sequences of defined length may hold: pydicom reads them whole when they are first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydicom.datadict import dictionary_VR
from pydicom.dataelem import RawDataElement
from pydicom.tag import BaseTag

MOST_ITEMS = 300_000
"""Items in one sequence, those inside them included: an object of 10,000 frames has some 100,000."""
MOST_BYTES = 64 * 2**20
"""Length of one sequence; of 10,000 frames each may take 6 KiB."""

_SHORT = 1 << 16
_ITEM = {True: b"\xfe\xff\x00\xe0", False: b"\xff\xfe\xe0\x00"}


def has_endless_sequence(elements: Mapping[BaseTag, Any]) -> bool:
    """Whether any sequence is beyond the bounds. Items are counted by their tags, not followed."""
    return any(
        isinstance(element, RawDataElement)
        and element.length > _SHORT
        and element.value is not None
        and _is_sequence(tag)
        and (len(element.value) > MOST_BYTES or element.value.count(_ITEM[element.is_little_endian]) > MOST_ITEMS)
        for tag, element in elements.items()
    )


def _is_sequence(tag: BaseTag) -> bool:
    """Private ones are never asked for."""
    try:
        return dictionary_VR(tag) == "SQ"
    except KeyError:
        return False
