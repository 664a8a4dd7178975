"""Items of a source without a table: class folders, split folders, labels lists, flat folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shardforge.errors import UsageError
from shardforge.sources.inventory import Finder, Inventory
from shardforge.sources.item import Item, Scan, SourceFile, UnknownFile
from shardforge.sources.labels import take_label_file
from shardforge.sources.lists import LIST_NAMES, open_list
from shardforge.sources.meanings import find_meanings
from shardforge.sources.names import source_name
from shardforge.sources.options import SourceOptions
from shardforge.sources.places import IMAGES_FOLDER, Places, find_places
from shardforge.sources.rows import Listing, RowReader, RowTally, locate, settle_columns
from shardforge.sources.siblings import Fields


@dataclass(slots=True)
class _Lists:
    """The labels lists in use (base folder → listing), the files they are, and files that only look like lists."""

    used: dict[str, Listing] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    unused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def scan_folders(inventory: Inventory, options: SourceOptions) -> Scan:
    """Items in the order of the walk, those of labels lists first; neither sorted nor checked for missing labels.

    Raises:
        UsageError: a labels list that cannot be parsed or names no file, or columns that need a table.
        StorageError: a labels list cannot be read.
    """
    places = find_places(inventory.images)
    lists_by_base = _list_files(inventory, places)
    finder = Finder(inventory) if lists_by_base else None
    lists = _open_lists(lists_by_base, inventory, places, finder, options) if finder else _Lists()
    if options.named_columns and not lists.used:
        raise UsageError(f"{options.named_columns[0]!r} names a column, but there is no table", todo="Give --table.")
    tally = RowTally()
    items: list[Item] = []
    columns = settle_columns(list(lists.used.values()))
    if finder:
        for listing in lists.used.values():
            reader = RowReader(listing, columns, finder, inventory.root, options.label_separator, tally)
            items += reader.items()
    classes = _ClassFolders(places, bool(lists.used))
    for fields in inventory.images:
        path = fields["image"].path
        if path not in tally.used:
            listed = "" in lists.used or places.base(path) in lists.used
            label = None if listed else classes.label(path)
            items.append(_item(inventory.root, fields, label, places.split(path), options, tally))
    unknown = [*inventory.blocked, *(UnknownFile(path, why) for path, why in lists.unused.items())]
    skip = tally.used | lists.files | set(lists.unused)
    unknown += (UnknownFile(file.path, why) for file, why in inventory.rest if file.path not in skip)
    unknown += (UnknownFile(path, "the label comes from elsewhere") for path in tally.ignored)
    return Scan(
        layout=_layout(places, lists, classes),
        items=items,
        unknown=unknown,
        columns={name: kind for name, (kind, _) in columns.items()},
        splits_declared=bool(places.splits) or any(item.split is not None for item in items),
        notes=[*places.notes, *lists.notes, *tally.notes(), *classes.notes()],
    )


class _ClassFolders:
    """The labels that folders give; remembers which there were."""

    def __init__(self, places: Places, with_lists: bool) -> None:
        self._places = places
        self._with_lists = with_lists
        self.labels: dict[str, str] = {}

    def label(self, path: str) -> str | None:
        folder = self._places.class_folder(path)
        if folder is None or (self._with_lists and folder == IMAGES_FOLDER):
            return None
        # One string per class, not one per item.
        return self.labels.setdefault(folder, source_name(folder))

    def notes(self) -> list[str]:
        names = sorted(set(self.labels.values()))
        return [f"there is only one class folder, {names[0]!r}"] if len(names) == 1 else []


def _item(
    root: str, fields: Fields, label: str | None, split: str | None, options: SourceOptions, tally: RowTally
) -> Item:
    labelled = take_label_file(root, fields, label, options.label_separator)
    if labelled.ignored is not None:
        tally.ignored.add(labelled.ignored)
    return Item(
        source=source_name(fields["image"].path),
        files=labelled.fields,
        label=labelled.label,
        split=split,
        problem=labelled.problem,
        detail=labelled.detail,
    )


def _layout(places: Places, lists: _Lists, classes: _ClassFolders) -> str:
    if places.splits:
        if lists.used:
            return "split folders with labels lists"
        return "split folders" if classes.labels else "split folders without class folders"
    if lists.used:
        return "labels list"
    return "class folders" if classes.labels else "flat folder"


def _list_files(inventory: Inventory, places: Places) -> dict[str, list[SourceFile]]:
    """Files named like labels lists in the folders where they count, in the order of their names' rank."""
    found: dict[str, list[SourceFile]] = {}
    for file, _ in inventory.rest:
        folder, _, name = file.path.rpartition("/")
        if name.lower() in LIST_NAMES and (folder == "" or folder in places.splits):
            found.setdefault(folder, []).append(file)
    for files in found.values():
        files.sort(key=lambda file: LIST_NAMES.index(file.path.rpartition("/")[2].lower()))
    return found


def _open_lists(
    by_base: dict[str, list[SourceFile]],
    inventory: Inventory,
    places: Places,
    finder: Finder,
    options: SourceOptions,
) -> _Lists:
    folders = {(places.base(path), places.class_folder(path)) for path in _main_paths(inventory)}
    with_classes = {base for base, folder in folders if folder not in (None, IMAGES_FOLDER)}
    lists = _Lists()
    for base, files in by_base.items():
        folder = f"{inventory.root}/{base}".rstrip("/") or "/"
        bases = (folder, f"{folder}/{IMAGES_FOLDER}")
        for file in files:
            if base in lists.used:
                lists.unused[file.path] = f"{Path(lists.used[base].table.where).name} gives the labels"
            elif listing := _open(Path(inventory.root, file.path), bases, places, base, finder, options, lists.notes):
                lists.used[base] = listing
                lists.files.add(file.path)
            elif base in with_classes:
                lists.unused[file.path] = "names none of the files here"
            else:
                raise UsageError(
                    "names none of the files beside it",
                    where=Path(inventory.root, file.path),
                    todo="A labels list has a file's name and its label in each line. Rename the file if it is none.",
                )
    return lists


def _open(
    path: Path,
    bases: tuple[str, ...],
    places: Places,
    base: str,
    finder: Finder,
    options: SourceOptions,
    notes: list[str],
) -> Listing | None:
    """The listing in a file, or None if it names no file that exists."""
    names_file = _names_file(finder, bases)
    table, told = open_list(path, names_file)
    if table is None:
        return None
    meanings = find_meanings(table, options, positional=True)
    cells = (row[meanings.path] for _, row in table.rows())
    if not any(isinstance(cell, str) and names_file(cell) for cell in cells):
        return None
    notes += [*told, *meanings.notes]
    return Listing(table, meanings, bases, places=places, base=base, by_stem=True)


def _names_file(finder: Finder, bases: Sequence[str]) -> Callable[[str], bool]:
    return lambda name: bool(locate(finder, bases, name, by_stem=True)[1])


def _main_paths(inventory: Inventory) -> list[str]:
    return [fields["image"].path for fields in inventory.images]
