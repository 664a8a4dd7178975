"""The recipe as others read it in a dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardforge.compile.where import names_in
from shardforge.recipe import Recipe


def published_recipe(recipe: Recipe, conceal: Callable[[str], str] | None) -> dict[str, Any]:
    """The recipe's identity as plain JSON values.

    Args:
        conceal: where identities are hidden, what stands for names of files, and for a condition that may name
            somebody: one on anything but the columns that DICOM headers give.
    """
    content = recipe.identity()
    if conceal is None:
        return content
    for name in ("table", "split_from"):
        if content[name] is not None:
            content[name] = conceal(content[name])
    where = recipe.filters.where
    if where is not None and not all(name.startswith("dicom_") for name in names_in(where)):
        content["filters"]["where"] = f"hidden: {conceal(where)}"
    return content
