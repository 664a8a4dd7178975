"""Leaves out what the recipe does not want, by a condition over the table."""

from __future__ import annotations

import pyarrow as pa

from shardforge.compile.labels import Labelling
from shardforge.compile.where import rows_where
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.metadata import label_types
from shardforge.sources.item import Scan


def excluded_by_where(where: str, scan: Scan, recipe: Recipe, labelling: Labelling) -> list[bool]:
    """Per item, whether a condition is not true for its row.

    Columns that have a meaning of their own (label, group, split, caption, source) are known by that word, and by
    their own name if the recipe names them. Of several classes or numbers to an item, only ``is null`` can be asked.

    Raises:
        UsageError: the condition cannot be understood, or is true for no item.
    """
    items = scan.items
    known = {name: pa.array([item.columns.get(name) for item in items], kind) for name, kind in scan.columns.items()}
    meant: dict[str, tuple[str | None, pa.Array]] = {
        "source": (recipe.path, pa.array([item.source for item in items], pa.string())),
        "group": (recipe.group, pa.array([item.group for item in items], pa.string())),
        "split": (recipe.split_column, pa.array([item.split for item in items], pa.string())),
        "caption": (recipe.caption, pa.array([item.caption for item in items], pa.string())),
    }
    label_type, name_type = label_types(labelling.info)
    if labelling.info.kind in ("class", "multi"):
        meant["label"] = recipe.label[0] if recipe.label else None, pa.array(labelling.names, name_type)
    elif labelling.info.kind == "number":
        meant["label"] = recipe.label[0] if recipe.label else None, pa.array(labelling.values, label_type)
    for name, (column, values) in meant.items():
        for alias in (column, name):
            if alias is not None:
                known.setdefault(alias, values)
    rows = set(rows_where(where, known))
    if not rows:
        raise UsageError(f"where: {where!r} is true for none of the {len(items):,} items")
    return [i not in rows for i in range(len(items))]
