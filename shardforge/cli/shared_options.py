"""Options that several commands have."""

from __future__ import annotations

import click

from shardforge.cli.single_option import option

json_flag = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
sidecars_option = option(
    "--sidecars", metavar="LIST", default="", help="Files for other readers: wids,dali,timm, or some of these."
)
quiet_flag = click.option("--quiet", is_flag=True, help="Say nothing but errors.")


def words(text: str) -> list[str]:
    """What stands between the commas, without empty parts."""
    return [word.strip() for word in text.split(",") if word.strip()]
