"""A recipe's options for the raw data."""

from __future__ import annotations

from pathlib import Path

from shardforge.recipe import Recipe
from shardforge.sources.options import SourceOptions


def source_options(recipe: Recipe) -> SourceOptions:
    """What the recipe says about the raw data, as sources take it."""
    return SourceOptions(
        table=None if recipe.table is None else Path(recipe.table),
        path_column=recipe.path,
        label_columns=recipe.label,
        group_column=recipe.group,
        split_column=recipe.split_column,
        caption_column=recipe.caption,
        mask_column=recipe.mask,
        key_column=recipe.keys.partition(":")[2] or None,
        label_separator=recipe.label_separator,
        follow_symlinks=recipe.follow_symlinks,
        fields=recipe.fields,
    )
