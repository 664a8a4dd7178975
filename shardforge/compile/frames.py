"""``frames: all``: an item for every frame or page of a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from shardforge.codecs.frame_count import FrameCount, count_frames
from shardforge.recipe import LimitOptions, Recipe
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Item
from shardforge.sources.scan import Scan


def expand_frames(scan: Scan, source: Path, recipe: Recipe) -> Scan:
    """The scan with one item for each frame, if the recipe wants that; otherwise as it is.

    The frames of a file have its label, group, sidecars and columns. A file that cannot be read, or has more frames
    than the limit, stays one item: making its sample tells why. One whose frames add up to too many pixels fails.

    Args:
        source: the source folder.
    """
    if recipe.frames != "all":
        return scan
    items = [frame for item in scan.items for frame in _frames(item, source, recipe.limits)]
    files = sum(item.frames > 1 and item.frame == 0 for item in items)
    more = len(items) - len(scan.items)
    note = f"frames: {files:,} files with several, {more + files:,} items of them"
    return replace(scan, items=items, notes=[*scan.notes, note])


def _frames(item: Item, source: Path, limits: LimitOptions) -> Iterator[Item]:
    found = None if item.problem is not None else _count(item, source, limits)
    if found is None or not 1 < found.frames <= limits.frames:
        yield item
    elif found.pixels > limits.total_pixels:
        detail = f"{found.frames} frames of {found.pixels} pixels in all, {limits.total_pixels} allowed"
        yield replace(item, problem=Reason.OVER_BUDGET, detail=detail)
    else:
        for frame in range(found.frames):
            yield replace(item, frame=frame, frames=found.frames)


def _count(item: Item, source: Path, limits: LimitOptions) -> FrameCount | None:
    main = item.files.get("image")
    if main is None:
        return None
    try:
        # O_NONBLOCK: a pipe that has taken the file's place must not hang the planner.
        descriptor = os.open(source / main.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limits.source_bytes:
                return None
            return count_frames(file, status.st_size, limits.frames)
    except OSError:
        return None
