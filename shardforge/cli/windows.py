"""``shardforge windows``."""

from __future__ import annotations

import click

from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag


@click.command(short_help="DICOM window presets.")
@json_flag
@reporting
def windows(as_json: bool) -> int:
    """List the named windows for DICOM with their centers and widths, and what each shows.

    \b
    Example:
      shardforge windows
    """
    from shardforge.preset_table import preset_lines, presets_as_json

    show(presets_as_json(), preset_lines(), as_json, silent=False)
    return 0
