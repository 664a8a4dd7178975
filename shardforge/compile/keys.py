"""The key of every item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import FieldInfo
from shardforge.shards.tar import MAX_NAME, is_key
from shardforge.sources.item import Item

_MAX_STEM = 60


def assign_keys(
    items: Sequence[Item],
    order: Sequence[int],
    recipe: Recipe,
    fields: Mapping[str, FieldInfo],
    excluded: Sequence[bool],
) -> tuple[list[str | None], list[Reason | None]]:
    """The key of every item and, where users bring their own, what is wrong with it."""
    keys: list[str | None] = [None] * len(items)
    problems: list[Reason | None] = [None] * len(items)
    if not recipe.keys.startswith("column:"):
        for index, i in enumerate(order):
            number = f"{index:09d}"
            keys[i] = number if recipe.keys == "index" else f"{_clean_stem(items[i].shown)}-{number}"
        return keys, problems
    longest = MAX_NAME - 1 - max(len(name) for name in fields)
    taken: set[str] = set()
    for i, item in enumerate(items):
        if excluded[i]:
            continue
        key = item.key if item.key is None or item.frames == 1 else f"{item.key}-{item.frame:05d}"
        if key is None or not is_key(key) or len(key) > longest:
            problems[i] = Reason.BAD_KEY
        elif key in taken:
            problems[i] = Reason.DUPLICATE_KEY
        else:
            taken.add(key)
            keys[i] = key
    return keys, problems


def _clean_stem(source: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(source).name.partition(".")[0])[:_MAX_STEM]
    # A dash in front would be taken for an option by the tools that meet the extracted file.
    return "x" + stem if not stem or stem.startswith(("__", "-")) else stem
