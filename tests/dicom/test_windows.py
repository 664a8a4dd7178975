"""Windows as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.dicom.facts import Window
from shardforge.dicom.presets import COMBINATIONS, PRESETS
from shardforge.dicom.windows import FromHeader, Given, Percentiles, VoiChoice, parse_windows, window_of

SOFT_STACK = [Given(center, width, "brain-subdural-soft") for center, width in ((40, 80), (80, 200), (40, 380))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lung", [Given(-600, 1500, "lung")]),
        (" Soft_Tissue ", [Given(40, 400, "soft-tissue")]),
        ("40/400", [Given(40, 400)]),
        ("-600/1500", [Given(-600, 1500)]),
        ("+35.5/80.25", [Given(35.5, 80.25)]),
        ("0.5 / .8", [Given(0.5, 0.8)]),
        ("header", [FromHeader(1)]),
        ("header:2", [FromHeader(2)]),
        ("percentile", [Percentiles(0.5, 99.5)]),
        ("percentile:0-100", [Percentiles(0, 100)]),
        ("percentile:0.1-99.9", [Percentiles(0.1, 99.9)]),
        ("none", []),
        ("brain, subdural,bone", [Given(40, 80, "brain"), Given(80, 200, "subdural"), Given(480, 2500, "bone")]),
        ("header,lung,40/400", [FromHeader(1), Given(-600, 1500, "lung"), Given(40, 400)]),
        ("pe", [Given(-600, 1500, "pe"), Given(100, 700, "pe"), Given(40, 400, "pe")]),
        ("brain-subdural-soft,0/1", [*SOFT_STACK, Given(0, 1)]),
    ],
)
def test_windows_are_understood(text: str, expected: list[object]) -> None:
    assert list(parse_windows(text)) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lungs", "did you mean 'lung'"),
        ("mediastinal", "did you mean 'mediastinum'"),
        ("sub-dural", "did you mean 'subdural'"),
        ("brain-subdural", "did you mean 'brain-subdural-bone'|'brain-subdural-soft'"),
        ("heder", "did you mean 'header'"),
        ("xyzzy", "CENTER/WIDTH"),
        ("", "CENTER/WIDTH"),
        ("lung,", "no window is called ''"),
        ("40", "no window is called '40'"),
        ("40/0", "width above 0"),
        ("40/-1", "width above 0"),
        ("a/b", "two numbers"),
        ("/400", "two numbers"),
        ("1/2/3", "two numbers"),
        ("nan/400", "two numbers"),
        ("inf/400", "two numbers"),
        ("40/inf", "two numbers"),
        ("40/1e39", "two numbers"),
        ("-1e39/400", "two numbers"),
        ("header:0", "from 1"),
        ("header:", "from 1"),
        ("header:-1", "from 1"),
        ("header:x", "from 1"),
        ("percentile:", "0 to 100"),
        ("percentile:5", "0 to 100"),
        ("percentile:99-1", "0 to 100"),
        ("percentile:1-101", "0 to 100"),
        ("percentile:-1-50", "0 to 100"),
        ("none,lung", "stands alone"),
    ],
)
def test_what_cannot_be_meant_is_told(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_windows(text)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=30))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        requests = parse_windows(text)
    except ValueError:
        return
    assert requests or text.strip().lower() == "none"


@pytest.mark.parametrize("name", [*PRESETS, *COMBINATIONS])
def test_every_name_is_understood(name: str) -> None:
    assert all(isinstance(request, Given) and request.preset == name for request in parse_windows(name))


def test_the_function_is_the_users_or_linear() -> None:
    asked: list[tuple[VoiChoice, str]] = [
        ("auto", "LINEAR"),
        ("linear", "LINEAR"),
        ("linear_exact", "LINEAR_EXACT"),
        ("sigmoid", "SIGMOID"),
    ]
    for choice, function in asked:
        window = window_of(Given(40, 400), choice)
        assert (window.center, window.width, window.function) == (40, 400, function)
    assert window_of(Given(40, 400)) == Window(40, 400)
    with pytest.raises(ValueError, match="sigmoid"):
        window_of(Given(40, 400), "SIGMOID")  # type: ignore[arg-type]
