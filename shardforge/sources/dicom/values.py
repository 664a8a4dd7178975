"""Values of a parsed dataset as plain Python, whatever an exporter wrote; never raises.

Raw bytes are converted here: pydicom's own conversion takes several times as long, and a header pass needs some fifty
values of every file.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from collections.abc import Sequence
from typing import Any, cast

from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset

_NUMBERS = {"US": "H", "SS": "h", "UL": "I", "SL": "i", "FL": "f", "FD": "d"}
_WIDTHS = {"H": 2, "h": 2, "I": 4, "i": 4, "f": 4, "d": 8}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_MOST_VALUES = 64
_AROUND = " \0\t\r\n"


class Values:
    """Reads the elements of one dataset or sequence item by tag."""

    def __init__(self, dataset: Dataset) -> None:
        elements = cast(dict[int, Any], dataset._dict)
        # pydicom's tags compare in Python, plain numbers do not.
        self._elements = dict(zip(map(int, elements), elements.values(), strict=True))
        self._dataset = dataset

    def texts(self, tag: int) -> tuple[str, ...]:
        """Values of a text element without the spaces and NULs around them; empty if absent."""
        element = self._elements.get(tag)
        if element is None:
            return ()
        value = element.value
        if isinstance(value, bytes):
            if value.isascii():
                value = value.decode("ascii")
            else:
                value = self._converted(tag, value)
        if isinstance(value, str):
            value = value.split("\\")
        if value is None or not isinstance(value, Sequence):
            value = () if value is None else (value,)
        # One string per file and value costs more memory than everything else of a header.
        return tuple(sys.intern(str(part).strip(_AROUND)) for part in value[:_MOST_VALUES])

    def text(self, tag: int) -> str:
        """The first value of a text element, "" if absent."""
        element = self._elements.get(tag)
        if element is None:
            return ""
        value = element.value
        if isinstance(value, bytes) and value.isascii():
            return sys.intern(value.decode("ascii").partition("\\")[0].strip(_AROUND))
        return next(iter(self.texts(tag)), "")

    def numbers(self, tag: int, code: str | None = None) -> tuple[float, ...]:
        """Finite numbers of a decimal or integer string, or of a binary element; empty if one of them is none.

        Args:
            code: VR of a binary element where the dataset does not state it (implicit VR): US, SS, UL, SL, FL, FD.
        """
        element = self._elements.get(tag)
        if element is None:
            return ()
        raw = element.value
        form = _NUMBERS.get(element.VR if element.VR in _NUMBERS else code or "")
        if form and isinstance(raw, bytes):
            order = "<" if not isinstance(element, RawDataElement) or element.is_little_endian else ">"
            count = min(len(raw) // _WIDTHS[form], _MOST_VALUES)
            found = struct.unpack_from(f"{order}{count}{form}", raw)
        elif isinstance(raw, (int, float)):
            found = (raw,)
        else:
            texts = self._plain(raw) if isinstance(raw, bytes) and raw.isascii() else self.texts(tag)
            if not all(map(_NUMBER.fullmatch, texts)):
                return ()
            found = tuple(map(float, texts))
        return tuple(map(float, found)) if all(map(math.isfinite, found)) else ()

    @staticmethod
    def _plain(raw: bytes) -> list[str]:
        """As `texts`, for what no one keeps."""
        return [text.strip(_AROUND) for text in raw.decode("ascii").split("\\")[:_MOST_VALUES]]

    def number(self, tag: int, code: str | None = None) -> float | None:
        """The first number of an element, None if absent or no number."""
        if tag not in self._elements:
            return None
        found = self.numbers(tag, code)
        return found[0] if found else None

    def integer(self, tag: int, code: str | None = None) -> int | None:
        """The first number of an element, if it is whole."""
        value = self.number(tag, code)
        return int(value) if value is not None and value.is_integer() else None

    def vector(self, tag: int, length: int, code: str | None = None) -> tuple[float, ...] | None:
        """Exactly ``length`` numbers, or None."""
        found = self.numbers(tag, code)
        return found if len(found) == length else None

    def items(self, tag: int) -> list[Values]:
        """The items of a sequence; empty if it is absent or cannot be read."""
        if tag not in self._elements:
            return []
        try:
            value = self._dataset[tag].value
            return [Values(item) for item in value if isinstance(item, Dataset)]
        except Exception:
            # A damaged sequence is one lost fact; pydicom raises whatever it runs into.
            return []

    def first(self, *tags: int) -> Values | None:
        """The first item of a sequence within the first item of a sequence …, None if one is absent."""
        here: Values | None = self
        for tag in tags:
            here = next(iter(here.items(tag)), None) if here is not None else None
        return here

    def has(self, tag: int) -> bool:
        """Whether an element is there and not empty."""
        element = self._elements.get(tag)
        return element is not None and bool(element.value)

    def _converted(self, tag: int, raw: bytes) -> Any:
        try:
            return self._dataset[tag].value
        except Exception:
            # An unknown character set: the bytes still tell one value from another.
            return raw.decode("latin-1")
