"""The windows a user asks for, from text such as ``lung``, ``40/400``, ``header`` or ``brain,subdural,bone``."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from shardforge.dicom.facts import VoiFunction, Window
from shardforge.dicom.presets import COMBINATIONS, PRESETS

VoiChoice = Literal["auto", "linear", "linear_exact", "sigmoid"]
"""Which VOI LUT function windows get; ``auto``: the header's for its own, LINEAR for named ones and numbers."""

_FUNCTIONS: dict[VoiChoice, VoiFunction | None] = {
    "auto": None,
    "linear": "LINEAR",
    "linear_exact": "LINEAR_EXACT",
    "sigmoid": "SIGMOID",
}
_LARGEST = 3.4028234663852886e38
"""Modality values are float32 at most."""
_WORDS = ("header", "percentile", "none")
_FORMS = "a preset (`shardforge windows` lists them), CENTER/WIDTH, header, header:N, percentile, percentile:LOW-HIGH"


@dataclass(frozen=True)
class Given:
    """A window by its numbers, in modality values (HU).

    Attributes:
        preset: the preset or combination it comes from, None where the numbers were given.
    """

    center: float
    width: float
    preset: str | None = None


@dataclass(frozen=True)
class FromHeader:
    """What the file recommends.

    Attributes:
        alternative: which of several, from 1: VOI tables before windows, each in the file's order.
    """

    alternative: int = 1


@dataclass(frozen=True)
class Percentiles:
    """From one percentile of the unpadded modality values to another, 0 to 100."""

    low: float = 0.5
    high: float = 99.5


Request = Given | FromHeader | Percentiles


@lru_cache(maxsize=16)
def parse_windows(text: str) -> tuple[Request, ...]:
    """The windows of a recipe: one per channel; none for ``none``, which leaves the modality values themselves.

    ``lung`` (or another preset), ``brain-subdural-bone`` (or another combination), ``-600/1500`` (center/width),
    ``header``, ``header:2`` (the second alternative), ``percentile``, ``percentile:1-99``; several with commas.

    Raises:
        ValueError: anything else.
    """
    parts = [part.strip().lower().replace("_", "-") for part in text.split(",")]
    if parts == ["none"]:
        return ()
    if "none" in parts:
        raise ValueError(f"window {text!r}: 'none' leaves the modality values as they are and stands alone")
    return tuple(request for part in parts for request in _parse(part))


def _parse(part: str) -> tuple[Request, ...]:
    if part in PRESETS:
        return (Given(PRESETS[part].center, PRESETS[part].width, part),)
    if part in COMBINATIONS:
        return tuple(Given(center, width, part) for center, width in COMBINATIONS[part].windows)
    word, colon, detail = part.partition(":")
    if word == "header":
        return (FromHeader(_alternative(part, detail) if colon else 1),)
    if word == "percentile":
        return (_percentiles(part, detail) if colon else Percentiles(),)
    if "/" in part:
        return (_numbers(part),)
    close = difflib.get_close_matches(part, [*PRESETS, *COMBINATIONS, *_WORDS], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it is one of: {_FORMS}"
    raise ValueError(f"no window is called {part!r}; {hint}")


def _alternative(part: str, detail: str) -> int:
    if not (detail.isascii() and detail.isdigit() and int(detail) > 0):
        raise ValueError(f"window {part!r}: header:N takes the number of the alternative, from 1")
    return int(detail)


def _percentiles(part: str, detail: str) -> Percentiles:
    low, high = _pair(detail, "-")
    if not 0 <= low < high <= 100:
        raise ValueError(f"window {part!r}: percentile:LOW-HIGH takes two numbers from 0 to 100, such as 0.5-99.5")
    return Percentiles(low, high)


def _numbers(part: str) -> Given:
    center, width = _pair(part, "/")
    if not (abs(center) <= _LARGEST and 0 < width <= _LARGEST):
        raise ValueError(f"window {part!r}: CENTER/WIDTH takes two numbers, the width above 0, such as 40/400")
    return Given(center, width)


def _pair(text: str, separator: str) -> tuple[float, float]:
    """Two numbers, NaN where there are others or none."""
    first, _, second = text.partition(separator)
    try:
        return float(first), float(second)
    except ValueError:
        return math.nan, math.nan


def window_of(request: Given, function: VoiChoice = "auto") -> Window:
    """The window of a request that needs no file."""
    return Window(request.center, request.width, function_of(function, "LINEAR"))


def function_of(choice: VoiChoice, automatic: VoiFunction) -> VoiFunction:
    """The VOI LUT function for the user's choice, ``automatic`` where that is ``auto``.

    Raises:
        ValueError: no such choice.
    """
    if choice not in _FUNCTIONS:
        raise ValueError(f"voi {choice!r}: auto, linear, linear_exact or sigmoid")
    return _FUNCTIONS[choice] or automatic
