"""``shardforge build``."""

from __future__ import annotations

from typing import Any

import click

from shardforge.cli.build_flags import build_flags
from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag, quiet_flag, sidecars_option, words


@click.command(short_help="Compile a folder of raw files into shards.")
@click.argument("src")
@click.argument("out")
@build_flags
@click.option("--dry-run", is_flag=True, help="Print the plan, write nothing.")
@sidecars_option
@json_flag
@quiet_flag
@reporting
def build(
    src: str,
    out: str,
    recipe: str | None,
    strict: bool,
    keep_suspect: bool,
    dry_run: bool,
    sidecars: str,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Compile the raw files in SRC into WebDataset shards with parquet metadata in OUT.

    SRC holds class folders, split folders with class folders, or images with a labels.csv; or a
    --table lists the items. Interrupted builds resume when the same command is run again.

    \b
    Example:
      shardforge build photos/ out/ --size 256 --split train=0.9,val=0.1
      shardforge build scans/ out/ --table scans.csv --label finding --group patient
      shardforge build ct/ out/ --window brain,subdural,bone --format png --split train=0.9,val=0.1
    """
    from shardforge.compile.build import build as compile_dataset

    given = {name: value for name, value in options.items() if value is not None and value != ()}
    if strict and keep_suspect:
        raise click.UsageError("--strict and --keep-suspect exclude each other")
    if strict or keep_suspect:
        given["damage"] = "strict" if strict else "keep"
    report = compile_dataset(src, out, recipe, dry_run=dry_run, quiet=quiet, sidecars=words(sidecars), **given)
    show(report.to_json(), report.lines(), as_json, quiet)
    return report.exit_code
