"""Labels as sources write them. What kind of label they are together is decided later, by the plan.

Text sources (csv, tsv, txt, ``.cls`` files, folder names) give words, even where they look like numbers; parquet
and JSON keep their types.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Label
from shardforge.sources.siblings import LABEL, Fields

_LONGEST_LABEL_FILE = 64 * 1024


def label_of_cell(cell: Any, separator: str | None) -> Label:
    """The label in one cell.

    Args:
        cell: words lose the blanks around them; None, blanks and NaN are no label; a list is several classes or
            numbers.
        separator: cuts a word into several classes.

    Raises:
        SampleError: ``bad_label`` for a value that can be no label (a date, an object).
    """
    if isinstance(cell, list | tuple):
        cleaned = (_scalar(part) for part in cell)
        return tuple(part for part in cleaned if part is not None)
    value = _scalar(cell)
    if separator is None or not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(separator) if part.strip()) or None


def label_of_cells(cells: Sequence[Any]) -> Label:
    """The label in several columns: one value per column, "" where a cell is empty; None if all are."""
    values = tuple("" if value is None else value for value in map(_scalar, cells))
    return values if any(value != "" for value in values) else None


def label_of_file(path: str, separator: str | None) -> Label:
    """The label in a ``.cls`` file: its text, or None if that is blank.

    Raises:
        SampleError: ``bad_sidecar`` if it cannot be read, is not UTF-8 or longer than 64 KiB.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(_LONGEST_LABEL_FILE + 1)
    except OSError as error:
        raise SampleError(Reason.BAD_SIDECAR, f"the cls file cannot be read ({error.strerror})") from None
    if len(raw) > _LONGEST_LABEL_FILE:
        raise SampleError(Reason.BAD_SIDECAR, "the cls file is longer than 64 KiB")
    try:
        return label_of_cell(raw.decode("utf-8-sig"), separator)
    except UnicodeDecodeError:
        raise SampleError(Reason.BAD_SIDECAR, "the cls file is not UTF-8") from None


@dataclass(frozen=True, slots=True)
class Labelled:
    """An image's files without its ``.cls`` file, and its label.

    Attributes:
        ignored: path of a ``.cls`` file that was not needed.
    """

    fields: Fields
    label: Label
    problem: Reason | None = None
    detail: str = ""
    ignored: str | None = None


def take_label_file(root: str, fields: Fields, label: Label, separator: str | None) -> Labelled:
    """Lets the ``.cls`` file beside an image give the label if nothing else does."""
    if LABEL not in fields:
        return Labelled(fields, label)
    path = fields[LABEL].path
    others = {name: file for name, file in fields.items() if name != LABEL}
    if label is not None:
        return Labelled(others, label, ignored=path)
    try:
        return Labelled(others, label_of_file(f"{root}/{path}", separator))
    except SampleError as error:
        return Labelled(others, None, error.reason, error.detail)


def word_of_cell(cell: Any) -> str | None:
    """A cell that names something (a group, a split, a key) as a word: ``12.0``, what a column of whole numbers
    with gaps turns into, is ``12``; None, NaN and blanks are no word."""
    if isinstance(cell, float):
        if math.isnan(cell):
            return None
        cell = int(cell) if cell.is_integer() else cell
    return None if cell is None else str(cell).strip() or None


def _scalar(cell: Any) -> str | int | float | None:
    if isinstance(cell, str):
        return cell.strip() or None
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, int | float):
        return cell
    raise SampleError(Reason.BAD_LABEL, f"a {type(cell).__name__} is no label")
