"""Reads one row of a table and lays what it says on the piles of the items it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import SampleError
from shardforge.sources.dicom_labels.boxes import BoxColumns
from shardforge.sources.dicom_labels.findings import decode_findings
from shardforge.sources.dicom_labels.keys import split_long
from shardforge.sources.dicom_labels.options import JoinOptions
from shardforge.sources.dicom_labels.pile import Pile, two
from shardforge.sources.item import Label
from shardforge.sources.labels import label_of_cell, label_of_cells, word_of_cell
from shardforge.sources.meanings import Meanings
from shardforge.sources.rows import split_of_word
from shardforge.sources.tables.column import Settled, Table


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are to be read.

    Attributes:
        meanings: of its columns; ``user`` holds those that become columns of the dataset.
        columns: the type of each of these, and what turns a cell into a value.
        long: a row is about one class.
        boxes: a row is about one box.
        findings: the label columns hold 1, 0, -1 and blanks.
    """

    table: Table
    meanings: Meanings
    columns: Mapping[str, Settled]
    long: bool
    boxes: BoxColumns | None
    findings: bool


def take_row(
    layout: Layout,
    options: JoinOptions,
    number: int,
    cells: Sequence[Any],
    words: Sequence[str],
    piles: Sequence[Pile],
) -> None:
    """Adds a row to the piles of the items that it is about.

    Args:
        words: its identifier, still with its class.

    Raises:
        UsageError: its split can be no name of one.
    """
    meanings = layout.meanings
    split = None if meanings.split is None else word_of_cell(cells[meanings.split])
    if split is not None and meanings.split is not None:
        split = split_of_word(layout.table, number, meanings.split, split)
    group = None if meanings.group is None else word_of_cell(cells[meanings.group])
    key = None if meanings.key is None else word_of_cell(cells[meanings.key])
    caption = None if meanings.caption is None else word_of_cell(cells[meanings.caption])
    values = {
        name: None if cells[place] is None else layout.columns[name][1](cells[place]) for place, name in meanings.user
    }
    for pile in piles:
        pile.rows += 1
        pile.splits = two(pile.splits, split)
        pile.groups = two(pile.groups, group)
        pile.keys = two(pile.keys, key)
        pile.captions = two(pile.captions, caption)
        for name, value in values.items():
            pile.column(name, value)
        try:
            _take_label(layout, options, cells, words, pile)
        except SampleError as error:
            pile.fail(error.reason, error.detail)


def _take_label(layout: Layout, options: JoinOptions, cells: Sequence[Any], words: Sequence[str], pile: Pile) -> None:
    places = layout.meanings.labels
    separator = options.columns.label_separator
    if layout.long:
        mark = word_of_cell(cells[places[0]])
        if mark is not None:
            pile.mark(split_long(words[0])[1], mark)
    elif layout.findings:
        names = [layout.table.columns[place] for place in places]
        label, doubtful = decode_findings([cells[place] for place in places], names, options.uncertain)
        pile.uncertain += tuple(name for name in doubtful if name not in pile.uncertain)
        pile.label(label)
    elif len(places) > 1:
        pile.label(label_of_cells([cells[place] for place in places]))
    elif places:
        pile.label(label_of_cell(cells[places[0]], separator))
    if layout.boxes is not None:
        names = _names(label_of_cell(cells[places[0]], separator)) if len(places) == 1 else []
        box = layout.boxes.box(cells, names)
        if box is not None:
            pile.boxes.append(box)
            pile.box_labels.append(names[0] if len(names) == 1 else None)


def _names(label: Label) -> list[str]:
    parts = label if isinstance(label, tuple) else () if label is None else (label,)
    return [word for part in parts if (word := word_of_cell(part)) is not None]
