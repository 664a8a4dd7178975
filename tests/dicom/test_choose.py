"""Where the window of a frame comes from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.dicom.choose import Choice, choose, percentile_window
from shardforge.dicom.facts import FrameMeaning, Lut, Window
from shardforge.dicom.voi import levels
from shardforge.dicom.windows import Percentiles, VoiChoice, parse_windows
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

VALUES = np.arange(1001, dtype=np.int16).reshape(7, 143)
TABLE = Lut(0, 8, np.arange(256, dtype=np.uint16))
WINDOWED = FrameMeaning(windows=(Window(40, 400, "SIGMOID"), Window(-600, 1500)), voi_from="frame")
BOTH = FrameMeaning(windows=WINDOWED.windows, voi_luts=(TABLE,), voi_from="top")


def choose_one(
    text: str,
    meaning: FrameMeaning,
    values: np.ndarray = VALUES,
    mask: np.ndarray | None = None,
    function: VoiChoice = "auto",
    nonzero: bool = False,
) -> Choice:
    (choice,) = choose(parse_windows(text), meaning, values, mask, function=function, nonzero=nonzero)
    return choice


@pytest.mark.parametrize("meaning", [FrameMeaning(), WINDOWED, BOTH])
def test_the_users_window_comes_first(meaning: FrameMeaning) -> None:
    assert choose_one("lung", meaning) == Choice(Window(-600, 1500), "preset:lung")
    assert choose_one("10/20", meaning) == Choice(Window(10, 20), "user")


@pytest.mark.parametrize("place", ["frame", "shared", "top"])
def test_the_headers_window_keeps_its_function_and_place(place: str) -> None:
    meaning = FrameMeaning(windows=WINDOWED.windows, voi_from=place)  # type: ignore[arg-type]
    first, second = choose(parse_windows("header,header:2"), meaning, VALUES, None)
    assert (first.source, first.center, first.width, first.function) == (place, 40, 400, "SIGMOID")
    assert (second.source, second.center, second.width, second.function) == (place, -600, 1500, "LINEAR")
    assert first.flags == second.flags == ()


def test_the_headers_table_comes_before_its_windows() -> None:
    choice = choose_one("header", BOTH)
    assert choice.voi is TABLE
    assert choice.source == "lut"
    assert (choice.center, choice.width, choice.function) == (None, None, None)
    assert choose_one("header:2", BOTH).voi == Window(40, 400, "SIGMOID")


def test_a_forced_function_is_every_windows_but_no_tables() -> None:
    assert choose_one("header", WINDOWED, function="linear").voi == Window(40, 400)
    assert choose_one("header", BOTH, function="linear").voi is TABLE
    assert choose_one("lung", WINDOWED, function="sigmoid").voi == Window(-600, 1500, "SIGMOID")
    assert choose_one("percentile", WINDOWED, function="sigmoid").function == "SIGMOID"


@pytest.mark.parametrize("text", ["header", "header:3"])
def test_without_any_window_the_range_of_the_values_serves(text: str) -> None:
    choice = choose_one(text, FrameMeaning())
    assert choice == Choice(Window(500, 990, "LINEAR_EXACT"), "percentile", (Flag.NO_WINDOW,))


@pytest.mark.parametrize(
    ("text", "meaning", "detail"),
    [
        ("header:3", WINDOWED, "header:3, and the header has 2 usable ones"),
        ("header:4", BOTH, "header:4, and the header has 3 usable ones"),
        (
            "header,header:2",
            FrameMeaning(windows=(Window(40, 400),)),
            "header:2, and the header has 1 usable window or table",
        ),
    ],
)
@pytest.mark.parametrize("shown_bits", [None, 8])
def test_an_alternative_that_a_header_with_windows_lacks_fails(
    text: str, meaning: FrameMeaning, detail: str, shown_bits: int | None
) -> None:
    with pytest.raises(SampleError) as caught:
        choose(parse_windows(text), meaning, VALUES, None, shown_bits=shown_bits)
    assert (caught.value.reason, caught.value.detail) == (Reason.UNSUPPORTED, detail)


def test_a_linear_window_below_width_1_is_noted() -> None:
    choice = choose_one("header", FrameMeaning(windows=(Window(0.5, 0.8),), voi_from="top"))
    assert choice == Choice(Window(0.5, 0.8, "LINEAR_EXACT"), "top", (Flag.WIDTH_BELOW_1,))
    assert choose_one("0.5/0.8", FrameMeaning()).flags == (Flag.WIDTH_BELOW_1,)
    assert choose_one("0.5/0.8", FrameMeaning(), function="sigmoid").flags == ()


def test_percentiles_leave_padding_out() -> None:
    """68 % of the mammogram GH133 are padding."""
    values, mask = VALUES.copy(), np.zeros(VALUES.shape, bool)
    values[:5], mask[:5] = -2000, True
    assert choose_one("percentile:0-100", WINDOWED, values, mask).voi == Window(857.5, 285, "LINEAR_EXACT")
    assert choose_one("percentile:0-100", WINDOWED, values, mask).flags == ()


def test_percentiles_of_mr_leave_zeros_out() -> None:
    values = np.array([[0, 0, 0, 100, 200]], np.float32)
    assert choose_one("percentile:0-100", WINDOWED, values, nonzero=True).voi == Window(150, 100, "LINEAR_EXACT")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-32768, 32767), min_size=1, max_size=40),
    st.floats(0, 100),
    st.floats(0, 100),
    st.sampled_from(["int16", "int32", "float32"]),
)
def test_percentiles_are_numpys(values: list[int], low: float, high: float, dtype: str) -> None:
    expected = np.percentile(np.array(values, np.float64), (low, high))
    window = percentile_window(np.array(values, dtype), None, Percentiles(low, high))
    if expected[0] < expected[1]:
        assert (window.center - window.width / 2) == pytest.approx(expected[0], abs=1e-6)
        assert (window.center + window.width / 2) == pytest.approx(expected[1], abs=1e-6)


def test_the_ends_of_percentiles_are_black_and_white() -> None:
    window = percentile_window(VALUES, None, Percentiles(10, 90))
    out = levels(np.array([99, 100, 101, 500, 899, 900, 901], np.int16), window)
    assert out.tolist() == [0, 0, 0, 128, 255, 255, 255]


def test_one_grey_value_and_none_at_all_are_black() -> None:
    for values in (np.full((2, 2), 7, np.int16), np.full((2, 2), 0.25, np.float32), np.full((2, 2), np.nan)):
        assert levels(values, percentile_window(values, None)).max() == 0
    assert percentile_window(VALUES, np.ones(VALUES.shape, bool)) == Window(0.5, 1, "LINEAR_EXACT")
