"""How a command ends: its result printed, its errors one line each, its exit code."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec

import click

from shardforge.errors import ShardforgeError

P = ParamSpec("P")
INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


def reporting(command: Callable[P, int]) -> Callable[P, None]:
    """Turns a command's errors into one line and its result into the exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json = bool(kwargs.get("as_json"))
        try:
            code = command(*args, **kwargs)
        except ShardforgeError as error:
            _complain(str(error), error.exit_code, as_json)
            code = error.exit_code
        except KeyboardInterrupt:
            resumable = "; the same command goes on from here" if command.__name__ == "build" else ""
            _complain(f"interrupted{resumable}", INTERRUPTED, as_json)
            code = INTERRUPTED
        sys.exit(code)

    return run


def _complain(message: str, code: int, as_json: bool) -> None:
    from shardforge.text import plain

    click.echo(f"shardforge: {plain(message)}", err=True)
    if as_json:
        click.echo(error_object(message, code))


def error_object(message: str, code: int) -> str:
    """What ``--json`` prints where a command fails."""
    return json.dumps({"status": "error", "error": message, "exit_code": code})


def show(content: Mapping[str, Any], lines: Sequence[str], as_json: bool, silent: bool) -> None:
    """Prints a result: as one JSON object, or as lines unless ``silent``."""
    if as_json:
        click.echo(json.dumps(content))
    elif not silent:
        click.echo("\n".join(lines))
