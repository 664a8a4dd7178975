"""The user's own columns of a table, under names that are free."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from shardforge.compile.annotations import ORIGINAL, wanted_columns
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.sources.item import Item


def user_columns(
    items: Sequence[Item],
    found: Mapping[str, pa.DataType],
    reserved: Sequence[str],
    recipe: Recipe,
    hidden: Collection[str] = (),
) -> tuple[dict[str, str], dict[str, pa.Array], list[str]]:
    """The columns of boxes and keypoints by role, the user's columns as arrays in item order, and notes.

    A name that the format uses itself gets the prefix ``user_``; given boxes and keypoints the suffix ``_original``,
    as their own name is for those that follow the image. Hidden columns, which only conditions may use, are left out.
    """
    roles = {column: role for role, column in wanted_columns(recipe).items()}
    for name, role in roles.items():
        if name not in found:
            told = f"its further columns: {', '.join(found)}" if found else "it has no further columns"
            raise UsageError(f"{role}: the source has no column {name!r} for them; {told}")
    found = {name: kind for name, kind in found.items() if name not in hidden}
    taken = {*reserved, "problem", "detail", "caption", "files", "frames", "planned_sha256", "crop", "cross_check"}
    targets = {}
    annotations = {}
    for name in sorted(found, key=lambda name: name not in roles):
        target = name
        while target in taken:
            target = f"user_{target}"
        taken.add(target)
        if name in roles:
            annotations[roles[name]] = target
            target = f"{target}{ORIGINAL}"
            taken.add(target)
        targets[name] = target
    notes = [f"the table's column {name!r} is kept as {targets[name]!r}" for name in found if targets[name] != name]
    columns = {
        targets[name]: pa.array([item.columns.get(name) for item in items], kind) for name, kind in found.items()
    }
    return annotations, columns, notes
