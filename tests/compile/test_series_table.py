"""The table of series shows what is remarkable first, and what is the same once."""

from __future__ import annotations

from dataclasses import replace

from shardforge.compile.series_table import series_lines, series_records
from shardforge.dicom.slices import SeriesFinding

PLAIN = SeriesFinding(
    series="1.2",
    part=0,
    n_slices=20,
    rows=64,
    columns=64,
    spacing_mm=2.5,
    spacing_from="positions",
    regular=True,
    tilted=False,
    tilt_deg=0.0,
    missing=0,
    shift_mm=0.0,
    duplicates=0,
    same_uid=0,
    same_position=False,
    localizer=False,
    mixed_orientation=False,
    sorted_by="position",
    normal=(0.0, 0.0, 1.0),
)
SURVEY = replace(PLAIN, n_slices=1, spacing_mm=None, spacing_from=None, localizer=True)
TILTED = replace(PLAIN, n_slices=12, tilted=True, tilt_deg=18.46)


def test_ordinary_series_are_not_told() -> None:
    assert series_lines([("a", PLAIN), ("b", PLAIN)]) == []
    assert len(series_records([("a", PLAIN), ("b", PLAIN)])) == 2


def test_the_largest_series_stand_first_with_their_numbers() -> None:
    _, first, second = series_lines([("a", SURVEY), ("b", PLAIN), ("c", TILTED)])
    assert first.split() == ["c", "12", "2.500", "mm", "18.5°", "tilted"]
    assert second.split() == ["a", "1", "-", "-", "localizer"]


def test_surveys_of_one_series_fill_one_line_and_hide_no_other_series() -> None:
    surveys = [("a", replace(SURVEY, part=part)) for part in range(30)]
    lines = series_lines([*surveys, ("b", SURVEY)])
    assert [line.split()[0] for line in lines[1:]] == ["a", "b"]
    assert lines[1].endswith("localizer (× 30)")


def test_beyond_twelve_lines_the_rest_is_counted() -> None:
    lines = series_lines([(f"s{number}", SURVEY) for number in range(15)])
    assert len(lines) == 1 + 12 + 1
    assert lines[-1] == "… and 3 more in build.json"
