"""``shardforge windows``."""

from __future__ import annotations

import json

from click.testing import CliRunner

from shardforge.cli import main
from shardforge.dicom.presets import COMBINATIONS, PRESETS


def test_the_command_lists_every_preset_with_its_numbers() -> None:
    result = CliRunner().invoke(main, ["windows"])
    assert result.exit_code == 0
    lines = {line.split(maxsplit=1)[0]: line for line in result.output.splitlines() if line}
    for name, preset in PRESETS.items():
        assert f" {preset.center:g}/{preset.width:g} " in lines[name]
        assert preset.shows in lines[name]
        assert all(f"{center:g}/{width:g}" in lines[name] for center, width in preset.variants)
    for name, combination in COMBINATIONS.items():
        assert all(f"{center:g}/{width:g}" in lines[name] for center, width in combination.windows)
    assert max(len(line) for line in result.output.splitlines()) <= 118


def test_json_has_the_same() -> None:
    result = CliRunner().invoke(main, ["windows", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert found["presets"].keys() == PRESETS.keys()
    assert found["presets"]["lung"]["center"] == -600
    assert found["presets"]["lung"]["width"] == 1500
    assert [-500, 1500] in found["presets"]["lung"]["variants"]
    assert found["combinations"]["pe"]["windows"] == [[-600, 1500], [100, 700], [40, 400]]


def test_help_has_an_example() -> None:
    result = CliRunner().invoke(main, ["windows", "--help"])
    assert result.exit_code == 0
    assert "shardforge windows" in result.output
