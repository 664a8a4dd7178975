"""Says which files a build that keeps formats could not keep as they were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from shardforge.recipe import Recipe
from shardforge.shards import metadata
from shardforge.shards.catalogue import Flag, Status
from shardforge.shards.layout import parquet_path

_CAUSES: Mapping[str, str] = {
    Flag.FIRST_FRAME: "of several frames",
    Flag.FRAME: "of several frames",
    Flag.SUSPECT: "damaged",
    Flag.ORIENTED: "turned upright",
    Flag.ICC_CONVERTED: "with a colour profile",
    Flag.ALPHA_COMPOSITED: "with transparency",
    Flag.DEPTH_REDUCED: "of more than 8 bits",
    Flag.DEPTH_RAISED: "of fewer than 16 bits",
    Flag.CMYK_ASSUMED_INVERTED: "in CMYK",
}
"""Flag → what kept a file from staying as it was, the weightiest first: a file counts once."""
_LIKE = {1: "in colours, stored as grey", 3: "grey or CMYK, stored as RGB"}


def warn_of_reencoded(out: Path, shards: Mapping[str, Sequence[str]], recipe: Recipe) -> tuple[str, ...]:
    """A warning if the format was to be kept and some files were encoded again without having been asked for it.

    Args:
        shards: split → names of its shards.

    Raises:
        DamagedError: a parquet file cannot be read.
    """
    if recipe.format != "keep" or recipe.reencode == "always":
        return ()
    causes: Counter[str] = Counter()
    for name in (name for names in shards.values() for name in names):
        table = metadata.read(parquet_path(out, name), ["status", "flags", "channels"])
        for status, flags, channels in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if status == Status.SUCCESS and Flag.PASSED_THROUGH not in (flags or ()):
                causes[_cause(flags or (), channels)] += 1
    if not causes:
        return ()
    told = ", ".join(f"{count:,} {cause}" for cause, count in causes.most_common())
    count = causes.total()
    what = "picture was" if count == 1 else "pictures were"
    return (f"{count:,} {what} encoded again despite format keep: {told}; --reencode never fails them instead",)


def _cause(flags: Iterable[str], channels: int) -> str:
    found = next((cause for flag, cause in _CAUSES.items() if flag in flags), None)
    return found or f"{_LIKE.get(channels, 'of other channels')}, or with bytes that are no part of the picture"
