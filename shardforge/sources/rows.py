"""From the rows of tables and labels lists to items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shardforge.errors import SampleError, UsageError
from shardforge.shards.catalogue import Reason
from shardforge.shards.layout import SPLIT_NAME
from shardforge.sources.inventory import Finder
from shardforge.sources.item import Item, Label
from shardforge.sources.labels import label_of_cell, label_of_cells, take_label_file, word_of_cell
from shardforge.sources.meanings import Meanings
from shardforge.sources.names import source_name
from shardforge.sources.places import Places
from shardforge.sources.siblings import MASK, Fields
from shardforge.sources.tables.column import Column, Settled, Table, TypedColumn


@dataclass(frozen=True)
class Listing:
    """A table or list, and how it is to be read.

    Attributes:
        bases: absolute folders its paths are relative to; the first in which a file exists counts.
        places: what the folders say about splits, where no column does.
        base: folder of the list relative to the source folder, "" for the source folder itself.
        by_stem: names may lack the extension.
    """

    table: Table
    meanings: Meanings
    bases: tuple[str, ...]
    places: Places = field(default_factory=lambda: Places({}))
    base: str = ""
    by_stem: bool = False


@dataclass(slots=True)
class RowTally:
    """What the rows of all listings used and missed.

    Attributes:
        mains: paths of the items' main files.
        used: paths of all their files.
        ignored: paths of ``.cls`` files that were not needed.
        repeated: rows whose file an earlier row named.
    """

    mains: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    repeated: int = 0

    def notes(self) -> list[str]:
        """What people should see."""
        if not self.repeated:
            return []
        rows = "row names" if self.repeated == 1 else "rows name"
        return [f"{self.repeated:,} {rows} a file of an earlier row; each is an item of its own"]


def settle_columns(listings: Sequence[Listing]) -> dict[str, Settled]:
    """The user's columns in order, with the type that all their values have."""
    columns: dict[str, Column] = {}
    for listing in listings:
        places = [
            (place, columns.setdefault(name, listing.table.column(name))) for place, name in listing.meanings.user
        ]
        open_places = [(place, column) for place, column in places if not isinstance(column, TypedColumn)]
        if open_places:
            for _, cells in listing.table.rows():
                for place, column in open_places:
                    column.see(cells[place])
    return {name: column.settle() for name, column in columns.items()}


def locate(finder: Finder, listing_bases: Sequence[str], name: str, by_stem: bool) -> tuple[list[str], list[Fields]]:
    """Where below the source folder ``name`` may be, and the images there: none, one, or (by stem) several."""
    paths = finder.relative(name, listing_bases)
    for path in paths:
        fields = finder.files(path)
        if fields is not None:
            return [path], [fields]
    if by_stem:
        for path in paths:
            if images := finder.images_by_stem(path):
                return [path], list(images)
    return paths, []


class RowReader:
    """Turns a listing's rows into items.

    Args:
        columns: the user's columns, settled over all listings.
        root: the source folder.
        tally: what the rows of all listings used; added to.
    """

    def __init__(
        self,
        listing: Listing,
        columns: Mapping[str, Settled],
        finder: Finder,
        root: str,
        separator: str | None,
        tally: RowTally,
    ) -> None:
        self._listing = listing
        self._table = listing.table
        self._meanings = listing.meanings
        self._user = [(place, name, columns[name][1]) for place, name in listing.meanings.user]
        self._finder = finder
        self._root = root
        self._separator = separator
        self._tally = tally

    def items(self) -> Iterator[Item]:
        """One item per row (or per image of the row's stem), in the table's order.

        A row whose file is missing or outside the source folder is an item with a problem.

        Raises:
            UsageError: a cell that cannot be a path or a split; or no row names a file that exists.
        """
        found, first = 0, None
        for number, cells in self._table.rows():
            name = self._path(number, cells, self._meanings.path)
            if name is None:
                row = f"{self._table.unit} {number}"
                source = f"{Path(self._table.where).name} {row}"
                yield self._item(number, cells, source, {}, Reason.MISSING_FILE, f"{row} names no file")
                continue
            first = first or name
            paths, images = locate(self._finder, self._listing.bases, name, self._listing.by_stem)
            if not images:
                source = source_name(paths[0] if paths else name)
                yield self._item(number, cells, source, {}, *self._why_absent(paths))
                continue
            found += 1
            self._tally.repeated += images[0]["image"].path in self._tally.mains
            for fields in images:
                yield self._item(number, cells, source_name(fields["image"].path), fields)
        if not found:
            raise self._nothing_found(first)

    def _nothing_found(self, first: str | None) -> UsageError:
        if first is None:
            return UsageError("lists no files", where=self._table.where)
        return UsageError(
            f"none of the files it lists exists; {first!r}, the first, was looked for in "
            f"{source_name(self._listing.bases[0])}",
            where=self._table.where,
            todo="Paths are relative to the source folder (or to the table's own folder inside it).",
        )

    def _item(
        self,
        number: int,
        cells: Sequence[Any],
        source: str,
        fields: Fields,
        problem: Reason | None = None,
        detail: str = "",
    ) -> Item:
        meanings = self._meanings
        label: Label = None
        try:
            label = self._label(cells)
        except SampleError as error:
            problem, detail = (problem, detail) if problem else (error.reason, error.detail)
        labelled = take_label_file(self._root, fields, label, self._separator)
        if labelled.ignored is not None:
            self._tally.ignored.add(labelled.ignored)
        files = labelled.fields
        mask = None if meanings.mask is None else self._path(number, cells, meanings.mask)
        mask_problem: Reason | None = None
        mask_detail = ""
        if mask is not None:
            paths = self._finder.relative(mask, self._listing.bases)
            found = next((file for path in paths if (file := self._finder.file(path)) is not None), None)
            if found is None:
                mask_problem, mask_detail = self._why_absent(paths)
            else:
                files = {**files, MASK: found}
        if problem is None:
            problem, detail = labelled.problem, labelled.detail
        if problem is None and mask_problem is not None:
            problem, detail = mask_problem, f"mask: {mask_detail}"
        self._tally.mains.update(file.path for field, file in files.items() if field == "image")
        self._tally.used.update(file.path for group in (fields, files) for file in group.values())
        return Item(
            source=source,
            files=files,
            label=labelled.label,
            group=None if meanings.group is None else word_of_cell(cells[meanings.group]),
            split=self._split(number, cells, source),
            key=None if meanings.key is None else word_of_cell(cells[meanings.key]),
            caption=self._caption(cells),
            columns={name: None if cells[at] is None else value(cells[at]) for at, name, value in self._user},
            problem=problem,
            detail=detail,
        )

    def _why_absent(self, paths: Sequence[str]) -> tuple[Reason, str]:
        if not paths:
            return Reason.OUTSIDE_SOURCE, "leads out of the source folder"
        return self._finder.why_absent(paths[0])

    def _path(self, number: int, cells: Sequence[Any], place: int) -> str | None:
        cell = cells[place]
        if cell is None or isinstance(cell, str):
            return cell or None
        raise UsageError(
            f"{self._table.unit} {number}: the column {self._table.columns[place]!r} holds no path "
            f"({type(cell).__name__})",
            where=self._table.where,
        )

    def _label(self, cells: Sequence[Any]) -> Label:
        places = self._meanings.labels
        if len(places) == 1:
            return label_of_cell(cells[places[0]], self._separator)
        return label_of_cells([cells[place] for place in places])

    def _caption(self, cells: Sequence[Any]) -> str | None:
        cell = None if self._meanings.caption is None else cells[self._meanings.caption]
        return None if cell is None or cell == "" else str(cell)

    def _split(self, number: int, cells: Sequence[Any], source: str) -> str | None:
        place = self._meanings.split
        word = None if place is None else word_of_cell(cells[place])
        if place is None or word is None:
            places = self._listing.places
            return places.split(source) or places.splits.get(self._listing.base)
        return split_of_word(self._table, number, place, word)


def split_of_word(table: Table, number: int, place: int, word: str) -> str:
    """What a row's word in the column of splits means.

    Raises:
        UsageError: it can be no name of a split.
    """
    split = word.lower()
    if SPLIT_NAME.fullmatch(split) is None:
        raise UsageError(
            f"{table.unit} {number}: {word!r} in the column {table.columns[place]!r} is no name for a split",
            where=table.where,
            todo="A split's name begins with a letter and holds letters, digits and underscores, 40 at most.",
        )
    return split
