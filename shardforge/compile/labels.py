"""From the labels that sources found to the dataset's one kind of label, its classes, and a value for every item."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import LabelInfo
from shardforge.sources.item import Item, Label

Value = int | float | list[int] | list[float] | None
"""What goes into the parquet's ``label`` column."""


_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Labelling:
    """The labels of a dataset.

    Attributes:
        info: kind and size.
        classes: class name → id.
        values: per item, the ``label`` column; None where the item has no (valid) label.
        names: per item, the ``label_name`` column: a class name, a list of them, or None.
        problems: per item, why its label makes it fail, or None.
        note: how the kind was decided, for people.
    """

    info: LabelInfo
    classes: dict[str, int]
    values: list[Value]
    names: list[str | list[str] | None]
    problems: list[Reason | None]
    note: str


def label_items(items: Sequence[Item], recipe: Recipe, *, from_folders: bool) -> Labelling:
    """Decides the kind of label and encodes every item's.

    Args:
        from_folders: labels are names of folders, hence classes, even where they look like numbers.

    Raises:
        UsageError: the recipe asks for a kind of label that the source does not have.
    """
    kind, note = recipe.label_kind, "as the recipe says"
    if kind == "auto":
        kind, note = ("class", "folder names") if from_folders else _guess(items, recipe.label)
    labelled = any(item.label is not None for item in items)
    if kind != "none" and not labelled:
        if recipe.label_kind not in ("auto", "none"):
            raise UsageError(f"label_kind {kind} is asked for, but no item has a label")
        kind, note = "none", "no item has a label"
    if kind == "none":
        empty: list[None] = [None] * len(items)
        return Labelling(LabelInfo("none"), {}, list(empty), list(empty), list(empty), note)
    if kind == "number":
        return _numbers(items, note)
    return _classes(items, recipe, kind == "multi", note)


def _guess(items: Sequence[Item], columns: Sequence[str]) -> tuple[Any, str]:
    present = [item.label for item in items if item.label is not None]
    if not present:
        return "none", "no item has a label"
    if len(columns) > 1:
        cells = [cell for label in present if isinstance(label, tuple) for cell in label if cell not in ("", None)]
        if all(_cell(cell) in (0.0, 1.0) for cell in cells):
            return "multi", f"{len(columns)} columns of 0 and 1"
        if not any(_cell(cell) is not None for cell in cells):
            raise UsageError(
                f"the label columns {', '.join(columns)} hold neither 0 and 1 nor numbers ({cells[0]!r}, for one)",
                todo="Name one column of classes, with --label-separator where it holds several.",
            )
        return "number", f"{len(columns)} columns of numbers"
    if any(isinstance(label, tuple) for label in present):
        if all(isinstance(cell, float) for label in present if isinstance(label, tuple) for cell in label):
            return "number", "lists of numbers"
        return "multi", "several classes to an item"
    if all(isinstance(label, float) for label in present):
        return "number", "numbers with decimals"
    numbers = [_number(label) for label in present]
    if all(number is not None for number in numbers) and any(number != int(number) for number in numbers if number):
        return "number", "numbers with decimals"
    return "class", "one class to an item"


def _number(cell: object) -> float | None:
    """A finite number, or None."""
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _cell(cell: object) -> float | None:
    """A cell of one among several label columns: a number, or a truth value as tables write it; None for others."""
    return _TRUTH[cell.lower()] if isinstance(cell, str) and cell.lower() in _TRUTH else _number(cell)


def _numbers(items: Sequence[Item], note: str) -> Labelling:
    rows = [_vector(item.label) for item in items]
    sizes = [len(row) for row in rows if row is not None]
    size = max(set(sizes), key=sizes.count) if sizes else 1
    values: list[Value] = []
    problems: list[Reason | None] = []
    for item, row in zip(items, rows, strict=True):
        good = row is not None and len(row) == size
        problems.append(None if good else Reason.MISSING_LABEL if item.label is None else Reason.BAD_LABEL)
        values.append(None if not good or row is None else row[0] if size == 1 else row)
    return Labelling(LabelInfo("number", size), {}, values, [None] * len(items), problems, note)


def _vector(label: Label) -> list[float] | None:
    cells = [_cell(cell) for cell in label] if isinstance(label, tuple) else [_number(label)]
    return None if any(cell is None for cell in cells) else [cell for cell in cells if cell is not None]


def _classes(items: Sequence[Item], recipe: Recipe, multi: bool, note: str) -> Labelling:
    named = [_class_names(item.label, recipe.label, multi) for item in items]
    found = {name for names in named if names is not None for name in names}
    if multi and len(recipe.label) > 1:
        order = list(recipe.label)
    else:
        order = list(recipe.classes) if recipe.classes is not None else _sorted_classes(found)
    classes = {name: number for number, name in enumerate(order)}
    values: list[Value] = []
    label_names: list[str | list[str] | None] = []
    problems: list[Reason | None] = []
    for item, names in zip(items, named, strict=True):
        if names is None or any(name not in classes for name in names) or (not multi and len(names) != 1):
            problems.append(Reason.MISSING_LABEL if item.label is None else Reason.BAD_LABEL)
            values.append(None)
            label_names.append(None)
        else:
            ids = sorted(classes[name] for name in set(names))
            problems.append(None)
            values.append(ids if multi else ids[0])
            label_names.append([order[i] for i in ids] if multi else order[ids[0]])
    return Labelling(LabelInfo("multi" if multi else "class"), classes, values, label_names, problems, note)


def _class_names(label: Label, columns: Sequence[str], multi: bool) -> list[str] | None:
    """The class names an item carries, or None when it carries none that can be read."""
    if label is None:
        return None
    if multi and len(columns) > 1:
        if not isinstance(label, tuple) or len(label) != len(columns):
            return None
        cells = [0.0 if cell in ("", None) else _cell(cell) for cell in label]
        if any(cell not in (0.0, 1.0) for cell in cells):
            return None
        return [name for name, cell in zip(columns, cells, strict=True) if cell]
    return [_word(cell) for cell in (label if isinstance(label, tuple) else (label,))]


def _word(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _sorted_classes(found: set[str]) -> list[str]:
    """Numbers by value, words by code point."""
    if all(name.isascii() and name.isdecimal() for name in found):
        return sorted(found, key=lambda name: (int(name), name))
    return sorted(found)


def strata(labelling: Labelling) -> list[list[int]]:
    """Per item, the label ids that a stratified split balances; numbers are balanced by deciles."""
    if labelling.info.kind == "number":
        return _deciles([value[0] if isinstance(value, list) else value for value in labelling.values])
    return [[] if value is None else value if isinstance(value, list) else [value] for value in labelling.values]  # type: ignore[list-item, misc]


def _deciles(values: Sequence[float | None]) -> list[list[int]]:
    ranked = sorted(range(len(values)), key=lambda i: (values[i] is None, values[i] or 0.0))
    buckets: list[list[int]] = [[] for _ in values]
    known = sum(value is not None for value in values)
    for rank, i in enumerate(ranked[:known]):
        buckets[i] = [rank * 10 // known]
    return buckets
