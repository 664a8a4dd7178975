"""Dates as days since a patient's earliest one: order and distance in time without the calendar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache

_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})|(\d{4})\.(\d{2})\.(\d{2})", re.ASCII)
_FIRST, _LAST = date(1901, 1, 1), date(2100, 12, 31)
_EPOCH = date(1970, 1, 1)


@lru_cache(maxsize=1024)
def parse_date(text: str) -> date | None:
    """A DICOM date (PS3.5 6.2, VR DA): ``YYYYMMDD``, or ``YYYY.MM.DD`` as before DICOM 3.

    None for anything partial or impossible, and for the dates that stand where a real one was removed or never set
    (up to 1900, 1970-01-01, after 2100): the distance of a real date from such a known one would give it away.
    """
    match = _DATE.fullmatch(text.strip(" \0"))
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found if _FIRST <= found <= _LAST and found != _EPOCH else None


def earliest_dates(dates: Iterable[tuple[str, str]]) -> dict[str, date]:
    """patient → the earliest valid date among (patient, DICOM date) pairs; patients without one are absent."""
    earliest: dict[str, date] = {}
    for patient, text in dates:
        found = parse_date(text)
        if found is not None and (patient not in earliest or found < earliest[patient]):
            earliest[patient] = found
    return earliest


def day_offset(text: str, reference: date | None) -> int | None:
    """Whole days from ``reference`` (a patient's earliest date: 0) to a DICOM date; None where either is missing."""
    found = parse_date(text)
    return None if found is None or reference is None else (found - reference).days
