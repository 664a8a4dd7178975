"""The text of a ``cls`` member → class id: one rule for every reader, for indexing and for verification."""

from __future__ import annotations

_LARGEST = 2**63 - 1
_BOM = b"\xef\xbb\xbf"


def class_id(text: bytes) -> int | None:
    """The id that ``text`` holds: at most 19 ASCII digits, within int64, blanks allowed around them.

    None for anything else, signs and underscores included.
    """
    digits = text.removeprefix(_BOM).strip()
    if not digits.isdigit() or len(digits) > len(str(_LARGEST)):
        return None
    number = int(digits)
    return number if number <= _LARGEST else None
