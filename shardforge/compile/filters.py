"""Leaves out what the recipe does not want: by a condition over the table, and by the geometry of the image."""

from __future__ import annotations

import pyarrow as pa

from shardforge.compile.labels import Labelling
from shardforge.compile.where import rows_where
from shardforge.errors import SampleError, UsageError
from shardforge.recipe import Recipe
from shardforge.sections import FilterOptions
from shardforge.shards.catalogue import Reason
from shardforge.shards.metadata import label_types
from shardforge.sources.item import Scan

HEADER_TELLS = frozenset(
    (
        "jpeg",
        "png",
        "webp",
        "tiff",
        "gif",
        "bmp",
        "pnm",
        "avif",
        "heif",
        "jpeg2000",
        "jxl",
        "qoi",
        "psd",
        "pcx",
        "tga",
    )
)
"""Formats whose header has the size that decoding gives; of an icon's pictures the decoder chooses one."""


def judge_geometry(width: int, height: int, filters: FilterOptions) -> None:
    """Lets a picture of this upright size pass, bounds included.

    Raises:
        SampleError: ``filtered_side``, ``filtered_area`` or ``filtered_aspect``, the first that applies.
    """
    short, long = sorted((width, height))
    if _below(short, filters.min_side) or _above(long, filters.max_side):
        raise SampleError(Reason.FILTERED_SIDE, f"{width} x {height}")
    if _below(width * height, filters.min_area) or _above(width * height, filters.max_area):
        raise SampleError(Reason.FILTERED_AREA, f"{width} x {height}")
    if _below(width / height, filters.min_aspect) or _above(width / height, filters.max_aspect):
        raise SampleError(Reason.FILTERED_ASPECT, f"{width} x {height}")


def _below(value: float, bound: float | None) -> bool:
    return bound is not None and value < bound


def _above(value: float, bound: float | None) -> bool:
    return bound is not None and value > bound


def excluded_by_where(where: str, scan: Scan, recipe: Recipe, labelling: Labelling) -> list[bool]:
    """Per item, whether a condition is not true for its row.

    Columns that have a meaning of their own (label, group, split, caption, source) are known by that word, and by
    their own name if the recipe names them.

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
    if labelling.info.kind == "class":
        meant["label"] = recipe.label[0] if recipe.label else None, pa.array(labelling.names, name_type)
    elif labelling.info.kind == "number" and labelling.info.size == 1:
        meant["label"] = recipe.label[0] if recipe.label else None, pa.array(labelling.values, label_type)
    for name, (column, values) in meant.items():
        for alias in (column, name):
            if alias is not None:
                known.setdefault(alias, values)
    rows = set(rows_where(where, known))
    if not rows:
        raise UsageError(f"where: {where!r} is true for none of the {len(items):,} items")
    return [i not in rows for i in range(len(items))]
