"""Values of elements as the file has them: wrong VRs, padded or foreign decimals, half-written sequences.

pydicom's own conversion raises on many of these, or warns, so numbers are read from the raw bytes here.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from typing import cast

from pydicom.dataelem import DataElement, RawDataElement
from pydicom.dataset import Dataset
from pydicom.multival import MultiValue
from pydicom.sequence import Sequence

_BINARY = {
    "US": "H",
    "SS": "h",
    "UL": "L",
    "SL": "l",
    "FL": "f",
    "FD": "d",
    "OW": "H",
}
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# No value read here is longer; LUT data and offset tables are read as bytes.
_LONGEST = 1 << 16


@dataclass(frozen=True)
class Numbers:
    """The numbers of an element.

    Attributes:
        values: finite; None in the place of what is empty or no number.
        clean: every value was written as the standard asks.
        vr: as the file states it, or as assumed.
        present: the element is there (it may be empty).
    """

    values: tuple[float | None, ...] = ()
    clean: bool = True
    vr: str = ""
    present: bool = False

    @property
    def first(self) -> float | None:
        """The first value, or None."""
        return self.values[0] if self.values else None

    def whole(self, count: int) -> tuple[float, ...] | None:
        """Exactly so many values, or None."""
        values = tuple(value for value in self.values if value is not None)
        return values if len(values) == count == len(self.values) else None


def element_of(dataset: Dataset, tag: int) -> DataElement | RawDataElement | None:
    """An element as it was read, or as pydicom has converted it since.

    pydicom's own access makes a tag object of the number each time, and converts elements without a value.
    """
    return cast(dict[int, DataElement | RawDataElement], dataset._dict).get(tag)


def numbers(dataset: Dataset, tag: int, vr: str) -> Numbers:
    """Reads numbers of any VR.

    Decimal strings may be padded, and a comma may stand for the point (then not clean); NaN and infinity are no
    numbers.

    Args:
        vr: what the data dictionary says, for datasets that do not state it.
    """
    element = element_of(dataset, tag)
    if element is None:
        return Numbers()
    if isinstance(element, DataElement):
        return _converted(element)
    stated = element.VR if element.VR not in (None, "UN") else vr
    content = (element.value or b"")[:_LONGEST]
    code = _BINARY.get(stated)
    if code is None:
        return _of_texts(content.decode("latin-1").split("\\"), stated)
    size = struct.calcsize(f"={code}")
    count = len(content) // size
    order = "<" if element.is_little_endian else ">"
    read = struct.unpack(f"{order}{count}{code}", content[: count * size])
    values = tuple(value if math.isfinite(value) else None for value in read)
    return Numbers(values, None not in values and len(content) % size == 0, stated, True)


def _converted(element: DataElement) -> Numbers:
    value = element.value
    if isinstance(value, bytes):
        return _of_texts(value[:_LONGEST].decode("latin-1").split("\\"), element.VR)
    many = list(value) if isinstance(value, MultiValue | list | tuple) else [] if value is None else [value]
    return _of_texts([str(item) for item in many], element.VR)


def _of_texts(texts: list[str], vr: str) -> Numbers:
    values: list[float | None] = []
    clean = True
    if not any(text.strip(" \0") for text in texts):
        return Numbers((), True, vr, True)
    for text in texts:
        plain = text.strip(" \0\t\r\n")
        if _DECIMAL.fullmatch(plain) is None:
            clean = False
            plain = plain.replace(",", ".")
        value = float(plain) if len(plain) < 100 and _DECIMAL.fullmatch(plain) else math.nan
        values.append(value if math.isfinite(value) else None)
    return Numbers(tuple(values), clean and None not in values, vr, True)


def text(dataset: Dataset, tag: int) -> str:
    """The first value of a code string or UID, stripped; "" if there is none."""
    element = element_of(dataset, tag)
    if element is None or element.value is None:
        return ""
    value = element.value
    if isinstance(value, bytes):
        value = value[:_LONGEST].decode("latin-1").split("\\")[0]
    elif not isinstance(value, str):
        value = next(iter(value), "") if isinstance(value, MultiValue | list | tuple) else str(value)
    return str(value).strip(" \0")


def content(dataset: Dataset, tag: int) -> tuple[bytes, bool, str | None] | None:
    """The bytes of an element, whether they are little endian, and its VR as stated (None if implicit)."""
    element = element_of(dataset, tag)
    if isinstance(element, RawDataElement):
        return element.value or b"", element.is_little_endian, element.VR
    if element is None:
        return None
    value = element.value
    if isinstance(value, bytes):
        return value, True, element.VR
    many = list(value) if isinstance(value, MultiValue | list | tuple) else [] if value is None else [value]
    try:
        return struct.pack(f"<{len(many)}H", *(int(item) & 0xFFFF for item in many)), True, element.VR
    except (TypeError, ValueError):
        return None


def items(dataset: Dataset, tag: int) -> list[Dataset]:
    """The items of a sequence; none where it is absent or cannot be read."""
    if element_of(dataset, tag) is None:
        return []
    try:
        value = dataset[tag].value
    except MemoryError:
        raise
    except Exception:
        # pydicom raises whatever a hostile length or nesting makes it run into.
        return []
    return [item for item in value if isinstance(item, Dataset)] if isinstance(value, list | Sequence) else []
