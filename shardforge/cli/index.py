"""``shardforge index``."""

from __future__ import annotations

import click

from shardforge.cli.outcome import reporting, show
from shardforge.cli.shared_options import json_flag, quiet_flag, sidecars_option, words


@click.command(short_help="Index WebDataset tars made elsewhere.")
@click.argument("dir")
@click.option("--out", metavar="DIR", help="Write the index there, with links to the tars.  [beside the tars]")
@click.option(
    "--split", metavar="NAME=GLOB", multiple=True, help="Such as train='a*.tar'; may be repeated.  [by name]"
)
@click.option("--image", metavar="FIELD", help="The member that holds the image.  [the most frequent picture]")
@click.option("--label", metavar="WHERE", default="auto", help="cls, json:NAME or none.  [cls where there is any]")
@click.option("--classes", metavar="FILE", help="Names of the classes by id, one a line.")
@click.option("--stats", is_flag=True, help="Decode every image, for pixel statistics.")
@sidecars_option
@json_flag
@quiet_flag
@reporting
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
        sidecars=words(sidecars),
        quiet=quiet or as_json,
    )
    show(report.to_json(), report.lines(), as_json, quiet)
    return report.exit_code
