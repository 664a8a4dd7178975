"""The boxes and keypoints of one item: from the table's cells to the columns of its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from shardforge.errors import SampleError
from shardforge.geometry.annotations import (
    Floats,
    check_areas,
    move_boxes,
    move_points,
    plain_numbers,
    read_boxes,
    read_points,
)
from shardforge.geometry.resize import Placement
from shardforge.recipe import Recipe
from shardforge.sections import BoxOptions, KeypointOptions

ROLES = ("boxes", "keypoints")
"""The recipe's sections, which are also how a plan calls its columns."""
TYPE = pa.list_(pa.list_(pa.float32()))
"""Of a column of boxes or points."""
ORIGINAL = "_original"
"""What is appended to the name of the column that keeps the table's own values."""

Annotations = Mapping[str, list[list[float]] | None]
"""Role → boxes or points in the recipe's format; None where the table's cell is empty."""


def wanted_columns(recipe: Recipe) -> dict[str, str]:
    """Role → the table's column that the recipe names."""
    sections = {"boxes": recipe.boxes, "keypoints": recipe.keypoints}
    return {role: section.column for role, section in sections.items() if section is not None}


def place_annotations(
    cells: Mapping[str, Any], recipe: Recipe, placement: Placement, orientation: int
) -> Annotations:
    """Brings an item's boxes and keypoints to the stored image.

    Args:
        cells: role → the table's cell.
        orientation: that was applied to the picture.

    Raises:
        SampleError: ``bad_annotation``.
    """
    placed: dict[str, list[list[float]] | None] = {}
    for role, cell in cells.items():
        if cell is None:
            placed[role] = None
        elif role == "boxes":
            placed[role] = plain_numbers(_boxes(cell, recipe.boxes, placement, orientation))
        else:
            placed[role] = plain_numbers(_points(cell, recipe.keypoints, placement, orientation))
    return placed


def well_formed(columns: Mapping[str, Any], recipe: Recipe) -> bool:
    """Whether an item's boxes and keypoints are all right as far as can be told without its image: their form, finite
    numbers, and areas.

    Args:
        columns: the item's cells by the table's names.
    """
    cells = {role: columns.get(column) for role, column in wanted_columns(recipe).items()}
    try:
        if cells.get("boxes") is not None and recipe.boxes is not None:
            check_areas(read_boxes(cells["boxes"]), recipe.boxes.format)
        if cells.get("keypoints") is not None and recipe.keypoints is not None:
            read_points(cells["keypoints"], recipe.keypoints.format)
    except SampleError:
        return False
    return True


def _boxes(cell: Any, options: BoxOptions | None, placement: Placement, orientation: int) -> Floats:
    assert options is not None
    turn = orientation if options.frame == "stored" else 1
    return move_boxes(read_boxes(cell), placement, format=options.format, units=options.units, orientation=turn)


def _points(cell: Any, options: KeypointOptions | None, placement: Placement, orientation: int) -> Floats:
    assert options is not None
    turn = orientation if options.frame == "stored" else 1
    points = read_points(cell, options.format)
    return move_points(points, placement, units=options.units, orientation=turn)
