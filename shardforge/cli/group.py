"""The command line: parse, call the API, print. Whatever is heavy is imported by the command that needs it."""

from __future__ import annotations

import sys
from typing import Any

import click

from shardforge.cli.audit import audit
from shardforge.cli.bench import bench
from shardforge.cli.build import build
from shardforge.cli.doctor import doctor
from shardforge.cli.index import index
from shardforge.cli.inspect import inspect
from shardforge.cli.outcome import INTERRUPTED, error_object
from shardforge.cli.windows import windows


class _Commands(click.Group):
    """Answers ``--json`` with an object also where the arguments themselves are wrong."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            return super().main(*args, **kwargs)
        except click.ClickException as error:
            error.show()
            given = kwargs.get("args") or (args[0] if args else None) or sys.argv[1:]
            if "--json" in given:
                click.echo(error_object(error.format_message(), error.exit_code))
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)


@click.group(
    cls=_Commands,
    commands=[audit, bench, build, doctor, index, inspect, windows],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="shardforge")
def main() -> None:
    """Compile raw images and DICOM into training shards, and see what is in them.

    \b
    Example:
      shardforge build photos/ out/ --split train=0.9,val=0.1
      shardforge inspect out/ --verify

    Exit codes: 0 fine, 1 finished with failures or damage, 2 usage, 3 cannot read or write,
    4 stopped at --max-errors (resumable), 130 interrupted (resumable).
    """
