from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner, Result

from shardforge.cli import main
from shardforge.cli.build import build


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["build", "missing-source", "missing-out", *arguments])


SINGLE = sorted(
    parameter.opts[0]
    for parameter in build.params
    if isinstance(parameter, click.Option) and not parameter.is_flag and not parameter.multiple
)


@pytest.mark.parametrize("name", SINGLE)
def test_an_option_of_one_value_given_twice_is_a_usage_error_that_names_it(name: str) -> None:
    result = invoke(name, "1", f"{name}=2")
    assert result.exit_code == 2
    assert f"{name} takes one value" in result.output


def test_values_that_would_be_lost_are_told() -> None:
    result = invoke("--where", "age > 1", "--where", "sex == 'F'")
    assert "age > 1" in result.output
    assert "sex == " in result.output
    assert json.loads(invoke("--seed", "1", "--seed", "1", "--json").output.splitlines()[-1])["exit_code"] == 2


def test_once_and_repeatable_options_reach_the_build() -> None:
    # Past the arguments, the source is found missing: another exit code, or another message.
    for arguments in (
        ("--where", "a > 1", "--size", "7"),
        ("--label", "a", "--label", "b"),
        ("--strict", "--strict"),
    ):
        assert "takes one value" not in invoke(*arguments).output


def test_values_come_as_click_types_them() -> None:
    context = build.make_context("build", ["src", "out", "--seed", "7", "--label", "a", "--label", "b"])
    assert context.params["seed"] == 7
    assert context.params["label"] == ("a", "b")
    assert context.params["where"] is None
    assert context.params["sidecars"] == ""
    assert context.params["shuffle"] is None
    with pytest.raises(click.BadParameter):
        build.make_context("build", ["src", "out", "--seed", "x"])
