"""``shardforge inspect``."""

from __future__ import annotations

import click

from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag, quiet_flag


@click.command(short_help="What is in a dataset, and is it whole?")
@click.argument("out")
@click.option("--verify", is_flag=True, help="Re-read everything and check it.")
@click.option("--sample", metavar="KEY|N", help="Show one sample with all its metadata.")
@click.option("--save", metavar="DIR", help="With --sample: write the sample's files there.")
@click.option("--mixing", is_flag=True, help="How well classes are mixed inside batches.")
@click.option("--batch-size", type=int, metavar="N", help="With --mixing.  [256]")
@json_flag
@quiet_flag
@reporting
def inspect(
    out: str,
    verify: bool,
    sample: str | None,
    save: str | None,
    mixing: bool,
    batch_size: int | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Show the splits, classes, sizes and failures of the dataset in OUT.

    \b
    Example:
      shardforge inspect out/
      shardforge inspect out/ --verify
      shardforge inspect out/ --sample 17 --save /tmp/look
      shardforge inspect out/ --mixing --batch-size 512
    """
    from pathlib import Path

    if save is not None and sample is None:
        raise click.UsageError("--save goes with --sample")
    if batch_size is not None and not mixing:
        raise click.UsageError("--batch-size goes with --mixing")
    if verify + mixing + (sample is not None) > 1:
        raise click.UsageError("--verify, --sample and --mixing are different questions")
    if mixing:
        from shardforge.inspect.mixing import measure_mixing

        measured = measure_mixing(Path(out), 256 if batch_size is None else batch_size)
        show(measured.to_json(), measured.lines(), as_json, quiet)
        return 0
    if verify:
        from shardforge.shards.verify import verify as check

        found = check(Path(out), progress=None if quiet or as_json else lambda line: click.echo(line, err=True))
        show(found.to_json(), found.lines(), as_json, quiet and found.sound)
        return 0 if found.sound else 1
    if sample is not None:
        from shardforge.inspect.sample import find_sample

        view = find_sample(Path(out), sample)
        saved = [] if save is None else view.save(Path(save))
        show(view.to_json(), [*view.lines(), *(f"wrote {path}" for path in saved)], as_json, quiet)
        return 0
    from shardforge.inspect.summary import summarise

    summary = summarise(Path(out))
    show(summary.to_json(), summary.lines(), as_json, quiet)
    return 0
