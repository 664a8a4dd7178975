"""Which column of a table means what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardforge.errors import UsageError
from shardforge.sources.options import SourceOptions
from shardforge.sources.tables.column import Table

_PATH_NAMES = ("path", "file", "filename", "image", "image_path", "file_name", "file_path", "filepath", "name")
_LABEL_NAMES = ("label", "class", "target")
_SPLIT_NAMES = ("split",)
_CAPTION_NAMES = ("caption", "text")
_MASK_NAMES = ("mask",)
_GROUP_HINTS = ("patient", "patient_id", "group")


@dataclass(frozen=True)
class Meanings:
    """The places of a table's columns, by what they mean; ``user`` holds all the others as (place, name)."""

    path: int
    labels: tuple[int, ...]
    group: int | None
    split: int | None
    caption: int | None
    mask: int | None
    key: int | None
    user: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]


def find_meanings(table: Table, options: SourceOptions, *, positional: bool = False) -> Meanings:
    """Decides what the columns of a table mean.

    Args:
        positional: where no name tells, the first column holds names and the second labels, as in a labels list.

    Raises:
        UsageError: a column that is asked for is not there, or none holds paths. It lists the columns there are.
    """
    columns = table.columns
    path = _place(table, options.path_column, _PATH_NAMES)
    if path is None and not positional:
        raise UsageError(
            f"no column of paths (none is called {', '.join(_PATH_NAMES)}); its columns: {_listed(columns)}",
            where=table.where,
            todo="Name the column that holds the paths.",
        )
    path = 0 if path is None else path
    if options.label_columns:
        labels = tuple(_named(table, name) for name in options.label_columns)
    else:
        label = _place(table, None, _LABEL_NAMES)
        if label is None and positional:
            label = next((place for place in range(len(columns)) if place != path), None)
        labels = () if label is None else (label,)
    group = _place(table, options.group_column, ())
    split = _place(table, options.split_column, _SPLIT_NAMES)
    caption = _place(table, options.caption_column, _CAPTION_NAMES)
    mask = _place(table, options.mask_column, _MASK_NAMES)
    key = _place(table, options.key_column, ())
    taken = {path, *labels, group, split, caption, mask, key}
    found = [("paths", path), *(("labels", label) for label in labels), ("groups", group), ("splits", split)]
    found += [("captions", caption), ("masks", mask), ("keys", key)]
    told = ", ".join(f"{what} from {columns[place]!r}" for what, place in found if place is not None)
    notes = [f"{Path(table.where).name}: {told}"]
    hint = _place(table, None, _GROUP_HINTS)
    if group is None and hint is not None:
        notes.append(
            f"the column {columns[hint]!r} looks like a group, but none was chosen: "
            f"rows that share it may land in different splits (--group {columns[hint]} keeps them together)"
        )
    user = tuple((place, name) for place, name in enumerate(columns) if place not in taken)
    return Meanings(path, labels, group, split, caption, mask, key, user, tuple(notes))


def _place(table: Table, wanted: str | None, obvious: Sequence[str]) -> int | None:
    if wanted is not None:
        return _named(table, wanted)
    folded = [name.casefold() for name in table.columns]
    return next((folded.index(name) for name in obvious if name in folded), None)


def _named(table: Table, name: str) -> int:
    if name not in table.columns:
        raise UsageError(f"has no column {name!r}; its columns: {_listed(table.columns)}", where=table.where)
    return table.columns.index(name)


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns)
