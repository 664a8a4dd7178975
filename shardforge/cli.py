"""The command line: parse, call the API, print. Whatever is heavy is imported by the command that needs it."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import click

from shardforge.build_flags import build_flags
from shardforge.errors import ShardforgeError
from shardforge.single_option import option

P = ParamSpec("P")
R = TypeVar("R")
_INTERRUPTED = 130


def _reporting(command: Callable[P, int]) -> Callable[P, None]:
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
            _complain(f"interrupted{resumable}", _INTERRUPTED, as_json)
            code = _INTERRUPTED
        sys.exit(code)

    return run


def _complain(message: str, code: int, as_json: bool) -> None:
    from shardforge.text import plain

    click.echo(f"shardforge: {plain(message)}", err=True)
    if as_json:
        click.echo(_error_object(message, code))


def _error_object(message: str, code: int) -> str:
    return json.dumps({"status": "error", "error": message, "exit_code": code})


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")
_sidecars = option(
    "--sidecars", metavar="LIST", default="", help="Files for other readers: wids,dali,timm, or some of these."
)
_quiet = click.option("--quiet", is_flag=True, help="Say nothing but errors.")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


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
                click.echo(_error_object(error.format_message(), error.exit_code))
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(_INTERRUPTED)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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


@main.command(short_help="Compile a folder of raw files into shards.")
@click.argument("src")
@click.argument("out")
@build_flags
@click.option("--dry-run", is_flag=True, help="Print the plan, write nothing.")
@_sidecars
@_json
@_quiet
@_reporting
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
    report = compile_dataset(src, out, recipe, dry_run=dry_run, quiet=quiet, sidecars=_words(sidecars), **given)
    _show(report.to_json(), report.lines(), as_json, quiet)
    return report.exit_code


@main.command(short_help="Index WebDataset tars made elsewhere.")
@click.argument("dir")
@click.option("--out", metavar="DIR", help="Write the index there, with links to the tars.  [beside the tars]")
@click.option(
    "--split", metavar="NAME=GLOB", multiple=True, help="Such as train='a*.tar'; may be repeated.  [by name]"
)
@click.option("--image", metavar="FIELD", help="The member that holds the image.  [the most frequent picture]")
@click.option("--label", metavar="WHERE", default="auto", help="cls, json:NAME or none.  [cls where there is any]")
@click.option("--classes", metavar="FILE", help="Names of the classes by id, one a line.")
@click.option("--stats", is_flag=True, help="Decode every image, for pixel statistics.")
@_sidecars
@_json
@_quiet
@_reporting
def index(
    dir: str,
    out: str | None,
    split: tuple[str, ...],
    image: str | None,
    label: str,
    classes: str | None,
    stats: bool,
    sidecars: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Give the WebDataset tars in DIR a manifest, parquet rows and an index, without touching them.

    Then ShardDataset and ShardLoader read them as they read what `build` makes. A sample's members
    may lie anywhere in its tar. Exit code 1: samples or tars are broken; they are named.

    \b
    Example:
      shardforge index imagenet/
      shardforge index /mnt/readonly --out index/ --split train='a-*.tar' --split val='b-*.tar'
    """
    from shardforge.indexing.index import index as index_tars
    from shardforge.indexing.options import class_names, split_patterns

    report = index_tars(
        dir,
        out,
        split=split_patterns(split),
        image=image,
        label=label,
        classes=None if classes is None else class_names(classes),
        stats=stats,
        sidecars=_words(sidecars),
        quiet=quiet or as_json,
    )
    _show(report.to_json(), report.lines(), as_json, quiet)
    return report.exit_code


@main.command(short_help="What is in a dataset, and is it whole?")
@click.argument("out")
@click.option("--verify", is_flag=True, help="Re-read everything and check it.")
@click.option("--sample", metavar="KEY|N", help="Show one sample with all its metadata.")
@click.option("--save", metavar="DIR", help="With --sample: write the sample's files there.")
@click.option("--mixing", is_flag=True, help="How well classes are mixed inside batches.")
@click.option("--batch-size", type=int, metavar="N", help="With --mixing.  [256]")
@_json
@_quiet
@_reporting
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
        _show(measured.to_json(), measured.lines(), as_json, quiet)
        return 0
    if verify:
        from shardforge.shards.verify import verify as check

        found = check(Path(out), progress=None if quiet or as_json else lambda line: click.echo(line, err=True))
        _show(found.to_json(), found.lines(), as_json, quiet and found.sound)
        return 0 if found.sound else 1
    if sample is not None:
        from shardforge.inspect.sample import find_sample

        view = find_sample(Path(out), sample)
        saved = [] if save is None else view.save(Path(save))
        _show(view.to_json(), [*view.lines(), *(f"wrote {path}" for path in saved)], as_json, quiet)
        return 0
    from shardforge.inspect.summary import summarise

    summary = summarise(Path(out))
    _show(summary.to_json(), summary.lines(), as_json, quiet)
    return 0


@main.command(short_help="Prove exactly-once from a log of keys.")
@click.argument("out")
@click.option(
    "--log", "logs", metavar="FILE", multiple=True, required=True, help="parquet, csv or jsonl; may be repeated."
)
@click.option("--split", metavar="NAME", default="train", show_default=True, help="The split that was read.")
@click.option("--dropped", type=int, metavar="N", default=0, help="Samples per epoch left out by tail='drop'.  [0]")
@_json
@_quiet
@_reporting
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
    _show(found.to_json(), found.lines(), as_json, quiet and found.sound)
    return 0 if found.sound else 1


def _show(content: Mapping[str, Any], lines: Sequence[str], as_json: bool, silent: bool) -> None:
    if as_json:
        click.echo(json.dumps(content))
    elif not silent:
        click.echo("\n".join(lines))


@main.command(short_help="Where the time goes when reading, and the settings to use.")
@click.argument("out")
@click.option("--split", metavar="NAME", help="Which split.  [train]")
@click.option("--batch-size", type=int, default=256, metavar="N", help="Rows of a batch.  [256]")
@click.option("--crop", type=int, metavar="N", help="Side of random crops; 0: as stored.  [224, or what images give]")
@click.option("--seconds", type=float, default=20.0, metavar="S", help="How long to measure, about.  [20]")
@click.option("--step-ms", type=float, default=0.0, metavar="MS", help="Also beside training steps of this length.")
@_json
@_quiet
@_reporting
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
    threads and workers, what binds, and the slowest samples. Nothing is written.

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
    _show(report.to_json(), report.lines(), as_json, quiet)
    return 0


@main.command(short_help="What this machine and installation can do.")
@_json
@_reporting
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


@main.command(short_help="DICOM window presets.")
@_json
@_reporting
def windows(as_json: bool) -> int:
    """List the named windows for DICOM with their centers and widths, and what each shows.

    \b
    Example:
      shardforge windows
    """
    from shardforge.preset_table import preset_lines, presets_as_json

    _show(presets_as_json(), preset_lines(), as_json, silent=False)
    return 0
