"""Labels lists: ``labels.csv``, ``labels.tsv`` or ``labels.txt`` beside the files they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shardforge.sources.recognise import image_extension
from shardforge.sources.tables.column import Table
from shardforge.sources.tables.text import BlankSeparatedList, SeparatedTable, lines, name_columns, records

LIST_NAMES = ("labels.csv", "labels.tsv", "labels.txt")
"""In the order in which they are looked for, in any case of letters."""


def open_list(path: Path, names_file: Callable[[str], bool]) -> tuple[Table | None, list[str]]:
    """Opens a labels list; None if it holds nothing.

    The first line is a header if its first cell names no file and does not look like an image's name either. In
    ``.txt`` files the first line tells the separator: a tab, else a comma, else blanks.

    Args:
        names_file: whether a name in the list stands for a file.

    Returns:
        The table and notes for people.

    Raises:
        UsageError: the list cannot be parsed.
        StorageError: it cannot be read.
    """
    separator = _separator(path)
    if separator is None:
        return None, []
    if separator == " ":
        _, (name, label) = next(BlankSeparatedList(path, names_file, has_header=False).rows())
        first = [name, *([label] if isinstance(label, str) else label or ())]
    else:
        _, first = next(records(path, separator))
    has_header = not names_file(first[0]) and image_extension(first[0]) is None
    notes = [f"{path.name}: the first line ({', '.join(first)}) is taken as the header"] if has_header else []
    if separator == " ":
        return BlankSeparatedList(path, names_file, has_header=has_header), notes
    names = ["name", "label", *(f"column_{number}" for number in range(3, len(first) + 1))][: len(first)]
    return SeparatedTable(path, separator, None if has_header else name_columns(names, path)), notes


def _separator(path: Path) -> str | None:
    line = next((line for line in lines(path) if line.strip()), None)
    if line is None:
        return None
    match path.suffix.lower():
        case ".csv":
            return ","
        case ".tsv":
            return "\t"
        case _:
            return "\t" if "\t" in line.strip() else "," if "," in line else " "
