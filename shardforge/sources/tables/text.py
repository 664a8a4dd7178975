"""Tables and lists in text: comma or tab separated, or names and labels with blanks between."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from shardforge.errors import StorageError, UsageError
from shardforge.sources.tables.column import Column, TextColumn

_LONGEST_LINE = 16 * 2**20


def lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, line ends included, a byte order mark removed.

    Raises:
        UsageError: a line is not UTF-8 or longer than 16 MiB.
        StorageError: the file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            number = 0
            while raw := file.readline(_LONGEST_LINE):
                number += 1
                if len(raw) == _LONGEST_LINE:
                    raise UsageError(f"line {number} is longer than 16 MiB", where=path)
                try:
                    yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    raise UsageError(
                        f"line {number} is not UTF-8", where=path, todo="Save the table as UTF-8."
                    ) from None
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror})", where=path) from None


def name_columns(header: Sequence[str], where: object) -> tuple[str, ...]:
    """Column names from a header; one without a name is called after its place.

    Raises:
        UsageError: a name stands there twice.
    """
    names = [cell.strip() or f"column_{number}" for number, cell in enumerate(header, 1)]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"the column {name!r} stands in the header twice", where=where)
    return tuple(names)


def records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The records of separated text, quoted as RFC 4180 says, each with the number of its (last) line; blank lines
    are left out.

    Raises:
        UsageError: as :func:`lines`; or the quoting is wrong, or a cell is longer than the csv module allows.
    """
    reader = csv.reader(lines(path), delimiter=separator, strict=True)
    try:
        for record in reader:
            if len(record) > 1 or (record and record[0].strip()):
                yield reader.line_num, record
    except csv.Error as error:
        raise UsageError(f"line {reader.line_num} cannot be parsed ({error})", where=path) from None


class SeparatedTable:
    """Comma or tab separated text.

    Args:
        names: column names, where the first line is data already; None if it is the header.

    Raises:
        UsageError: the file is empty, or its header is unusable.
    """

    unit = "line"

    def __init__(self, path: Path, separator: str, names: Sequence[str] | None = None) -> None:
        self.where = str(path)
        self._path = path
        self._separator = separator
        self._has_header = names is None
        if names is None:
            _, header = next(records(path, separator), (0, None))
            if header is None:
                raise UsageError("is empty", where=path)
            names = name_columns(header, path)
        self.columns: tuple[str, ...] = tuple(names)

    def rows(self) -> Iterator[tuple[int, Sequence[Any]]]:
        skip = self._has_header
        for number, record in records(self._path, self._separator):
            if skip:
                skip = False
                continue
            if len(record) != len(self.columns):
                raise UsageError(
                    f"line {number} has {len(record)} cells, expected {len(self.columns)}",
                    where=self._path,
                    todo="A cell that contains the separator or a line break must stand in double quotes.",
                )
            yield number, [cell or None for cell in record]

    def column(self, name: str) -> Column:
        return TextColumn()


class BlankSeparatedList:
    """Lines of a name and its labels with blanks between, in the columns ``name`` and ``label``.

    A label cell is None, a word, or a tuple of words.

    Args:
        names_file: whether a name stands for a file; tells names with blanks in them.
    """

    unit = "line"
    columns: tuple[str, ...] = ("name", "label")

    def __init__(self, path: Path, names_file: Callable[[str], bool], *, has_header: bool) -> None:
        self.where = str(path)
        self._path = path
        self._names_file = names_file
        self._has_header = has_header

    def rows(self) -> Iterator[tuple[int, Sequence[Any]]]:
        skip = self._has_header
        for number, line in enumerate(lines(self._path), 1):
            words = line.split()
            if not words:
                continue
            if skip:
                skip = False
                continue
            yield number, self._cells(line.strip(), words)

    def _cells(self, line: str, words: list[str]) -> list[Any]:
        name, labels = words[0], words[1:]
        if not self._names_file(name):
            if self._names_file(line):
                return [line, None]
            before, last = line.rsplit(maxsplit=1) if labels else (name, "")
            if labels and self._names_file(before):
                name, labels = before, [last]
        return [name, None if not labels else labels[0] if len(labels) == 1 else tuple(labels)]

    def column(self, name: str) -> Column:
        return TextColumn()
