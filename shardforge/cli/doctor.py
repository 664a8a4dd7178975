"""``shardforge doctor``."""

from __future__ import annotations

import json

import click

from shardforge.cli.outcome import reporting
from shardforge.cli.shared_options import json_flag


@click.command(short_help="What this machine and installation can do.")
@json_flag
@reporting
def doctor(as_json: bool) -> int:
    """Tell versions, codecs and limits, and what should be mended.

    \b
    Example:
      shardforge doctor
    """
    from shardforge.doctor import diagnose

    report = diagnose()
    click.echo(json.dumps(report.to_json()) if as_json else "\n".join(report.lines()))
    return 0 if report.ok else 1
