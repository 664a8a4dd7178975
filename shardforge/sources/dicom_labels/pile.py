"""All that the rows of a table say about one item, and what comes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Label

Scalar = str | int | float


@dataclass(frozen=True, slots=True)
class Joined:
    """What a table says about an item.

    Attributes:
        label, group, split, key, caption, problem, detail: as for :class:`~shardforge.sources.item.Item`.
        columns: further columns; None where the table is silent, or its rows about the item differ.
        rows: how many rows were about it.
    """

    label: Label = None
    group: str | None = None
    split: str | None = None
    key: str | None = None
    caption: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    problem: Reason | None = None
    detail: str = ""
    rows: int = 0


@dataclass(slots=True)
class Pile:
    """What the rows so far say about one item. There is one per item, so what is empty takes no room.

    Attributes:
        labels: those that differ, in the order of the rows.
        groups, splits, keys, captions: the first of each, and the first that differs from it.
        marks: class → its mark, in a table with a row per class.
        boxes, box_labels: left, top, right and bottom, and the class of each box.
        uncertain: names of uncertain findings.
        columns: column → its value; ``differing`` names those of which there are several.
    """

    rows: int = 0
    labels: dict[Label, None] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    boxes: list[list[float]] = field(default_factory=list)
    box_labels: list[str | None] = field(default_factory=list)
    uncertain: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    captions: tuple[str, ...] = ()
    columns: dict[str, Any] = field(default_factory=dict)
    differing: frozenset[str] = frozenset()
    problem: Reason | None = None
    detail: str = ""

    def fail(self, reason: Reason, detail: str) -> None:
        """Records a problem; the first counts."""
        if self.problem is None:
            self.problem, self.detail = reason, detail

    def label(self, label: Label) -> None:
        """Takes a row's label; None is none."""
        if label is not None:
            self.labels.setdefault(label)

    def mark(self, name: str, value: str) -> None:
        """Takes a row about one class."""
        if self.marks.setdefault(name, value) != value:
            self.fail(Reason.BAD_LABEL, f"the class {name!r} has the labels {self.marks[name]!r} and {value!r}")

    def column(self, name: str, value: Any) -> None:
        """Takes a cell of a further column."""
        if name in self.columns and self.columns[name] != value:
            self.differing |= {name}
        self.columns.setdefault(name, value)


def two(values: tuple[str, ...], value: str | None) -> tuple[str, ...]:
    """The first value, and the first that differs from it; None is no value."""
    return values if value is None or value in values or len(values) == 2 else (*values, value)


def single(pile: Pile, what: str, values: tuple[str, ...]) -> str | None:
    """The one value that the rows agree on; where they do not, the item fails."""
    if len(values) > 1:
        pile.fail(Reason.BAD_LABEL, f"the rows of the item name the {what}s {values[0]!r} and {values[1]!r}")
    return values[0] if values else None


def merge_labels(labels: Collection[Label], *, multi: bool) -> Label:
    """One label for an item whose rows have these, each different from the others.

    Lists of classes are united, and so are single ones if an item may have several. One value per column is merged
    column by column: a blank gives way, and 1 wins over 0 if an item may have several classes.

    Raises:
        SampleError: ``bad_label`` if labels contradict each other.
    """
    if len(labels) < 2:
        return next(iter(labels), None)
    if multi or all(isinstance(label, tuple) for label in labels):
        united = (part for label in labels for part in (label if isinstance(label, tuple) else (label,)))
        return tuple(dict.fromkeys(part for part in united if part is not None))
    raise _contradiction(labels)


def merge_vectors(labels: Collection[Label], *, multi: bool) -> Label:
    """:func:`merge_labels` for labels of several columns, one value each.

    Raises:
        SampleError: as there.
    """
    rows = [label for label in labels if isinstance(label, tuple)]
    return tuple(_merge_cells(cells, multi) for cells in zip(*rows, strict=True)) if rows else None


def _merge_cells(cells: tuple[Scalar, ...], multi: bool) -> Scalar:
    values = dict.fromkeys(cell for cell in cells if cell != "")
    if len(values) < 2:
        return next(iter(values), "")
    if multi and {str(value) for value in values} <= {"0", "1", "0.0", "1.0"}:
        return max(values, key=float)
    raise _contradiction(values)


def _contradiction(labels: Collection[Label]) -> SampleError:
    first, second = islice(labels, 2)
    return SampleError(Reason.BAD_LABEL, f"the rows of the item have the labels {first!r} and {second!r}")
