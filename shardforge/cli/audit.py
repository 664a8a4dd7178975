"""``shardforge audit``."""

from __future__ import annotations

import click

from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag, quiet_flag


@click.command(short_help="Prove exactly-once from a log of keys.")
@click.argument("out")
@click.option(
    "--log", "logs", metavar="FILE", multiple=True, required=True, help="parquet, csv or jsonl; may be repeated."
)
@click.option("--split", metavar="NAME", default="train", show_default=True, help="The split that was read.")
@click.option("--dropped", type=int, metavar="N", default=0, help="Samples per epoch left out by tail='drop'.  [0]")
@json_flag
@quiet_flag
@reporting
def audit(out: str, logs: tuple[str, ...], split: str, dropped: int, as_json: bool, quiet: bool) -> int:
    """Prove from logged keys that every epoch was given every sample of OUT exactly once.

    The log has the columns epoch and key, and perhaps rank and step: then every rank must have made
    equally many steps (leave them out for epochs that were resumed on another number of ranks).
    Rows without a key are masked ones. Exit code 1: samples are missing or repeated, keys foreign,
    or steps unequal.

    \b
    To write a log (one file for each rank):
      log = open(f"keys-{rank}.jsonl", "a")
      for step, batch in enumerate(loader):      # fields=("image", "label", "key")
          entries = [{"epoch": epoch, "rank": rank, "step": step, "key": key} for key in batch["key"]]
          log.writelines(json.dumps(entry) + "\\n" for entry in entries)

    \b
    Example:
      shardforge audit out/ --log keys-0.jsonl --log keys-1.jsonl
    """
    from pathlib import Path

    from shardforge.inspect.audit import audit as check

    found = check(Path(out), [Path(path) for path in logs], split=split, dropped=dropped)
    show(found.to_json(), found.lines(), as_json, quiet and found.sound)
    return 0 if found.sound else 1
