"""What ``shardforge windows`` shows: the window presets and combinations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from shardforge.dicom.presets import COMBINATIONS, PRESETS


def presets_as_json() -> dict[str, Any]:
    """Plain types only, ready for JSON."""
    return {
        "presets": {name: asdict(preset) for name, preset in PRESETS.items()},
        "combinations": {name: asdict(combination) for name, combination in COMBINATIONS.items()},
    }


def preset_lines() -> list[str]:
    """The presets and combinations as a table of text."""
    text = [f"{'name':<22}{'center/width':<14}shows (also in use)"]
    for name, preset in PRESETS.items():
        others = f" ({_several(preset.variants)})" if preset.variants else ""
        text.append(f"{name:<22}{_one(preset.center, preset.width):<14}{preset.shows}{others}")
    text += ["", "several channels"]
    for name, combination in COMBINATIONS.items():
        text.append(f"{name:<22}{_several(combination.windows)}: {combination.shows}")
    return [*text, "", "Centers and widths in HU. CENTER/WIDTH, header, header:N and percentile:LOW-HIGH serve too."]


def _one(center: float, width: float) -> str:
    return f"{center:g}/{width:g}"


def _several(windows: Iterable[tuple[float, float]]) -> str:
    return ", ".join(_one(center, width) for center, width in windows)
