"""Tables with one row per box: VinDr's corners, and RSNA's corner and size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom_labels.keys import fold
from shardforge.sources.tables.column import Table

_CORNERS = (("xmin", "ymin", "xmax", "ymax"), ("x1", "y1", "x2", "y2"))
_CORNER_AND_SIZE = (("x", "y", "width", "height"), ("x", "y", "w", "h"))
_CLASS_NAMES = ("classname", "class", "label", "finding", "category", "target")
_NO_BOX = frozenset({"nofinding"})


@dataclass(frozen=True)
class BoxColumns:
    """Where a row's box stands.

    Attributes:
        places: of the four numbers.
        sized: they are left, top, width and height; else left, top, right and bottom.
        label: the column of the box's class that is recognised, or None.
    """

    places: tuple[int, ...]
    sized: bool
    label: str | None

    def box(self, cells: Sequence[Any], names: Sequence[str]) -> list[float] | None:
        """Left, top, right and bottom in pixels of the stored image; None for a row without a box.

        Args:
            names: the row's classes; ``No finding`` has no box, whatever numbers fill its place.

        Raises:
            SampleError: ``bad_annotation`` if some of the numbers are missing, or one is none.
        """
        numbers = [_number(cells[place]) for place in self.places]
        if all(number is None for number in numbers) or any(fold(name) in _NO_BOX for name in names):
            return None
        values = [number for number in numbers if number is not None]
        if len(values) < 4:
            raise SampleError(Reason.BAD_ANNOTATION, f"a box of {len(values)} numbers")
        left, top, third, fourth = values
        return [left, top, left + third, top + fourth] if self.sized else values


def box_columns(table: Table) -> BoxColumns | None:
    """The columns of boxes, if the table has them under the usual names."""
    folded = [fold(name) for name in table.columns]
    for names in (*_CORNERS, *_CORNER_AND_SIZE):
        if all(name in folded for name in names):
            label = next((folded.index(name) for name in _CLASS_NAMES if name in folded), None)
            return BoxColumns(
                tuple(folded.index(name) for name in names),
                names in _CORNER_AND_SIZE,
                None if label is None else table.columns[label],
            )
    return None


def _number(cell: Any) -> float | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        value = math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        raise SampleError(Reason.BAD_ANNOTATION, f"{str(cell)[:40]!r} is no coordinate") from None
    if math.isinf(value):
        raise SampleError(Reason.BAD_ANNOTATION, "an infinite coordinate")
    return None if math.isnan(value) else value
