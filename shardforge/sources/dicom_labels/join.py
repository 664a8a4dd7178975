"""Joins a table of labels to DICOM items, by the identifiers that medical tables use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.errors import SampleError, UsageError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom_labels.boxes import BoxColumns, box_columns
from shardforge.sources.dicom_labels.findings import holds_findings
from shardforge.sources.dicom_labels.ids import SliceIds
from shardforge.sources.dicom_labels.keys import KeyColumns, choose_key, is_identifier
from shardforge.sources.dicom_labels.matching import Matcher
from shardforge.sources.dicom_labels.notes import JoinTally, notes_of
from shardforge.sources.dicom_labels.options import JoinOptions
from shardforge.sources.dicom_labels.pile import Joined, Pile, merge_labels, merge_vectors, single
from shardforge.sources.dicom_labels.row import Layout, take_row
from shardforge.sources.dicom_labels.slice_numbers import SliceNumbers
from shardforge.sources.item import Label
from shardforge.sources.meanings import Meanings, find_meanings
from shardforge.sources.rows import Listing, settle_columns
from shardforge.sources.tables.column import Table
from shardforge.sources.tables.open import open_table

BOXES, BOX_LABELS, UNCERTAIN = "boxes", "box_labels", "label_uncertain"
"""Columns that a join makes: boxes as left, top, right and bottom in pixels of the stored image, their classes in the
same order, and the names of uncertain findings."""
_MADE: Mapping[str, pa.DataType] = {
    BOXES: pa.list_(pa.list_(pa.float64())),
    BOX_LABELS: pa.list_(pa.string()),
    UNCERTAIN: pa.list_(pa.string()),
}


@dataclass(frozen=True)
class LabelJoin:
    """What a table says about items.

    Attributes:
        items: per item; one without a row has neither label nor problem.
        columns: further columns of the table, then those that the join makes, with the type of all their values.
        classes: sorted, where the table has a row per class, so that a class no item has is known as well; else None.
        splits_declared: whether the table names splits.
        notes: decisions and oddities that people should see; rows are told by number, never by identifier.
    """

    items: tuple[Joined, ...]
    columns: Mapping[str, pa.DataType]
    classes: tuple[str, ...] | None
    splits_declared: bool
    notes: tuple[str, ...]


def join_labels(table: Path, options: JoinOptions, items: Sequence[Sequence[SliceIds]]) -> LabelJoin:
    """Gives items what the rows of a table say about them.

    A row is about every item that its identifier names: a study's label goes to all slices of the study, the labels
    of slices go to the volume they are part of. Several rows about one item may agree; where they differ, classes
    are united if an item may have several, and else the item fails as ``bad_label``.

    - A table with a row per box (VinDr, RSNA pneumonia) gives each item its boxes and the classes of all its rows;
      several where any item of the table has several.
    - A table with a row per image and class (``ID_0002081b6_any``, RSNA hemorrhage) gives each item the classes that
      are marked 1.
    - Label columns of 1, 0, -1 and blanks (CheXpert) are read as :attr:`JoinOptions.uncertain` says.

    Args:
        table: a csv, tsv, parquet or jsonl file.
        items: per item, the slices it is made of; one for most, all of them for a volume.

    Raises:
        UsageError: the table cannot be parsed, has no column of identifiers or lacks one that is asked for; none of
            its rows names an item; it counts slices from 1, and nobody said so; a split that can be no name of one;
            a column called like one that is made.
        StorageError: it cannot be read.
    """
    opened = open_table(table)
    matcher = Matcher(items, options.first_slice or 0)
    key = choose_key(opened, options, matcher)
    boxes = None if key.long else box_columns(opened)
    layout, left_out = _layout(opened, options, key, boxes)
    piles: dict[int, Pile] = {}
    tally = JoinTally()
    doubted = options.first_slice is None and key.key == "slice"
    numbers = SliceNumbers(matcher.slice_counts() if doubted else {})
    for number, cells in opened.rows():
        words = key.words(cells)
        found = key.find(words, matcher)
        tally.see(number, found)
        if doubted:
            numbers.see(*words)
        if found.items:
            chosen = [piles.setdefault(item, Pile()) for item in found.items]
            take_row(layout, options, number, cells, words, chosen)
    numbers.check(opened.where)
    for item in matcher.contested() if key.key == "path" else ():
        piles[item].fail(Reason.BAD_LABEL, "several paths of the table end like the path of this file")
    made = _made(layout)
    joined = _settle(layout, options, piles, len(items))
    return LabelJoin(
        items=joined,
        columns={
            **{name: kind for name, (kind, _) in layout.columns.items()},
            **{name: _MADE[name] for name in made},
        },
        classes=tuple(sorted({name for pile in piles.values() for name in pile.marks})) if layout.long else None,
        splits_declared=any(item.split is not None for item in joined),
        notes=(
            *notes_of(layout, options, key, piles, len(items), tally, left_out),
            *(f"{Path(opened.where).name}: {note}" for note in numbers.notes()),
        ),
    )


def _layout(
    table: Table, options: JoinOptions, key: KeyColumns, boxes: BoxColumns | None
) -> tuple[Layout, list[str]]:
    columns = replace(options.columns, path_column=table.columns[key.places[0]])
    if boxes is not None and boxes.label is not None and not columns.label_columns:
        columns = replace(columns, label_columns=(boxes.label,))
    meanings = find_meanings(table, columns)
    if key.long and len(meanings.labels) != 1:
        raise UsageError(
            f"a table with a row per class has one column of labels, not {len(meanings.labels)}",
            where=table.where,
            todo="Name the column that holds 0 and 1.",
        )
    user, left_out = _user_columns(meanings, options, {*key.places, *(boxes.places if boxes else ())})
    meanings = replace(meanings, user=tuple(user))
    layout = Layout(
        table=table,
        meanings=meanings,
        columns=settle_columns([Listing(table, meanings, bases=())]),
        long=key.long,
        boxes=boxes,
        findings=holds_findings(table, meanings.labels),
    )
    for name in _made(layout):
        if name in layout.columns:
            raise UsageError(f"has a column {name!r}, as the join makes one", where=table.where, todo="Rename it.")
    return layout, left_out


def _user_columns(
    meanings: Meanings, options: JoinOptions, used: set[int]
) -> tuple[list[tuple[int, str]], list[str]]:
    """Further columns of the dataset, and the names of those left out because they identify somebody."""
    further = [(place, name) for place, name in meanings.user if place not in used]
    if options.keep_identifiers:
        return further, []
    kept = [(place, name) for place, name in further if not is_identifier(name)]
    return kept, [name for place, name in further if is_identifier(name)]


def _made(layout: Layout) -> list[str]:
    return [*((BOXES, BOX_LABELS) if layout.boxes else ()), *((UNCERTAIN,) if layout.findings else ())]


def _settle(layout: Layout, options: JoinOptions, piles: Mapping[int, Pile], count: int) -> tuple[Joined, ...]:
    several = options.multi or any(_several(pile.labels) for pile in piles.values())
    empty = Joined(columns=dict.fromkeys([*layout.columns, *_made(layout)]))
    return tuple(_joined(layout, options, piles[item], several) if item in piles else empty for item in range(count))


def _several(labels: Iterable[Label]) -> bool:
    labels = list(labels)
    return len(labels) > 1 or any(isinstance(label, tuple) for label in labels)


def _joined(layout: Layout, options: JoinOptions, pile: Pile, several: bool) -> Joined:
    label: Label = None
    try:
        label = _label(layout, options, pile, several)
    except SampleError as error:
        pile.fail(error.reason, error.detail)
    group, split, key = (
        single(pile, what, values)
        for what, values in (("group", pile.groups), ("split", pile.splits), ("key", pile.keys))
    )
    columns: dict[str, Any] = {
        name: None if name in pile.differing else pile.columns.get(name) for name in layout.columns
    }
    if layout.boxes is not None:
        columns |= {BOXES: pile.boxes, BOX_LABELS: pile.box_labels}
    if layout.findings:
        columns[UNCERTAIN] = _still_uncertain(layout, pile, label)
    return Joined(
        label=None if pile.problem is Reason.BAD_LABEL else label,
        group=group,
        split=split,
        key=key,
        caption=pile.captions[0] if pile.captions else None,
        columns=columns,
        problem=pile.problem,
        detail=pile.detail,
        rows=pile.rows,
    )


def _label(layout: Layout, options: JoinOptions, pile: Pile, several: bool) -> Label:
    if layout.long:
        for name, mark in pile.marks.items():
            if mark not in ("0", "1"):
                raise SampleError(Reason.BAD_LABEL, f"the class {name!r} is marked {mark!r}, not 0 or 1")
        return tuple(sorted(name for name, mark in pile.marks.items() if mark == "1")) if pile.marks else None
    if len(layout.meanings.labels) > 1:
        return merge_vectors(pile.labels, multi=options.multi)
    if layout.boxes is not None and several:
        united = merge_labels([(), *pile.labels], multi=True)
        return united if pile.labels else None
    return merge_labels(pile.labels, multi=options.multi)


def _still_uncertain(layout: Layout, pile: Pile, label: Label) -> list[str]:
    """The uncertain findings of an item; not those that another of its rows is sure of."""
    names = [layout.table.columns[place] for place in layout.meanings.labels]
    sure = {name for name, cell in zip(names, label, strict=True) if cell == 1} if isinstance(label, tuple) else set()
    return [name for name in pile.uncertain if name not in sure]
