"""Label columns of 1 (present), 0 (absent), -1 (uncertain) and blanks (not mentioned), as CheXpert and MIMIC-CXR have
them (Irvin et al. 2019, arXiv 1901.07031, section 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shardforge.sources.dicom_labels.options import Uncertain
from shardforge.sources.item import Label
from shardforge.sources.labels import label_of_cells
from shardforge.sources.tables.column import Table

_SIGNS = {"1": 1, "1.0": 1, "0": 0, "0.0": 0, "-1": -1, "-1.0": -1, "": 0}


def holds_findings(table: Table, places: Sequence[int]) -> bool:
    """Whether these columns are coded so: nothing but 1, 0, -1 and blanks, and -1 somewhere."""
    uncertain = False
    if len(places) < 2:
        return False
    for _, cells in table.rows():
        for place in places:
            sign = _SIGNS.get(_word(cells[place]))
            if sign is None:
                return False
            uncertain |= sign < 0
    return uncertain


def decode_findings(
    cells: Sequence[Any], names: Sequence[str], uncertain: Uncertain
) -> tuple[Label, tuple[str, ...]]:
    """The label in such columns, one value per column, and the names of the uncertain ones.

    With ``keep`` it is a vector of numbers, in which a blank is 0; else a blank stays one.
    """
    values: list[int | None] = [_SIGNS[word] if (word := _word(cell)) else None for cell in cells]
    doubtful = tuple(name for name, value in zip(names, values, strict=True) if value == -1)
    if all(value is None for value in values):
        return None, ()
    replaced: dict[Uncertain, int | None] = {"ignore": None, "keep": -1, "positive": 1, "negative": 0}
    values = [replaced[uncertain] if value == -1 else value for value in values]
    if uncertain == "keep":
        return tuple(value or 0 for value in values), doubtful
    if all(value is None for value in values):
        # Nothing but doubts: an item with a label of none of the classes, not one without a label.
        return ("",) * len(values), doubtful
    return label_of_cells(values), doubtful


def _word(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell).strip()
