"""``shardforge bench``."""

from __future__ import annotations

import click

from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag, quiet_flag


@click.command(short_help="Where the time goes when reading, and the settings to use.")
@click.argument("out")
@click.option("--split", metavar="NAME", help="Which split.  [train]")
@click.option("--batch-size", type=int, default=256, metavar="N", help="Rows of a batch.  [256]")
@click.option("--crop", type=int, metavar="N", help="Side of random crops; 0: as stored.  [224, or what images give]")
@click.option("--seconds", type=float, default=20.0, metavar="S", help="How long to measure, about.  [20]")
@click.option("--step-ms", type=float, default=0.0, metavar="MS", help="Also beside training steps of this length.")
@json_flag
@quiet_flag
@reporting
def bench(
    out: str,
    split: str | None,
    batch_size: int,
    crop: int | None,
    seconds: float,
    step_ms: float,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure reading the dataset in OUT on this machine: time per sample and stage, speed by
    threads and workers, what binds, the slowest samples, and those that cannot be read (exit
    code 1). Nothing is written.

    \b
    Example:
      shardforge bench out/
      shardforge bench out/ --split val --batch-size 128 --step-ms 80
    """
    from pathlib import Path

    from shardforge.inspect.bench.bench import bench as measure

    report = measure(
        Path(out),
        split=split,
        batch_size=batch_size,
        crop=crop,
        seconds=seconds,
        step_ms=step_ms,
        progress=None if quiet or as_json else lambda line: click.echo(line, err=True),
    )
    show(report.to_json(), report.lines(), as_json, quiet)
    return 1 if report.unreadable.samples else 0
