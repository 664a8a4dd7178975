"""Dates become distances in days, and dates that stand for a removed one give nothing away."""

from __future__ import annotations

from datetime import date

import pytest

from shardforge.dicom.day_offset import day_offset, earliest_dates, parse_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20040229", date(2004, 2, 29)),
        ("1999.12.31", date(1999, 12, 31)),
        (" 20010101 ", date(2001, 1, 1)),
        ("20010101\0", date(2001, 1, 1)),
    ],
)
def test_both_forms_of_a_date_are_read(text: str, expected: date) -> None:
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2004",
        "200402",
        "20030229",
        "20041301",
        "2004-02-29",
        "20040229101112",
        "2004.2.29",
        "2004.0229",
        "٢٠٠٤٠٢٢٩",
        "20040101-20041231",
        "ANONYMIZED",
    ],
)
def test_partial_and_impossible_dates_are_none(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize("text", ["19000101", "00010101", "19700101", "99991231"])
def test_dates_that_stand_for_a_removed_one_are_none(text: str) -> None:
    assert parse_date(text) is None


def test_offsets_count_from_each_patients_own_earliest_date() -> None:
    earliest = earliest_dates(
        [("A", "20200301"), ("A", "2020.02.28"), ("A", "junk"), ("B", "20200310"), ("C", ""), ("A", "19000101")]
    )
    assert earliest == {"A": date(2020, 2, 28), "B": date(2020, 3, 10)}
    # 2020 is a leap year: 28 and 29 February lie before 1 March.
    assert day_offset("20200301", earliest["A"]) == 2
    assert day_offset("20200228", earliest["A"]) == 0
    assert day_offset("20210310", earliest["B"]) == 365
    assert day_offset("junk", earliest["A"]) is None
    assert day_offset("20200301", earliest.get("C")) is None
