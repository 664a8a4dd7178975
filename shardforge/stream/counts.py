"""Whole numbers at the door. Whatever counts as one (NumPy's and torch's too) becomes a plain int, so that states
made of them can be saved as JSON and loaded again."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from shardforge.errors import UsageError


def whole(name: str, value: SupportsIndex, least: int | None = 0) -> int:
    """``value`` as an int.

    Args:
        name: of the argument, for the message.
        least: what it is at least; None: anything.

    Raises:
        UsageError: it is no whole number, or too small.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name}={value!r}: a whole number is needed") from None
    if least is not None and number < least:
        raise UsageError(f"{name}={number}: " + ("not negative" if least == 0 else f"at least {least}"))
    return number
