"""Tables as JSON lines: one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shardforge.errors import UsageError
from shardforge.sources.tables.column import Column, JsonColumn
from shardforge.sources.tables.text import lines


class JsonLines:
    """One JSON object per line; a key that an object lacks is an empty cell.

    Raises:
        UsageError: a line is no JSON object, or there is none at all.
    """

    unit = "line"

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._path = path
        names: dict[str, None] = {}
        for _, record in self._records():
            names.update(dict.fromkeys(record))
        if not names:
            raise UsageError("is empty", where=path)
        self.columns: tuple[str, ...] = tuple(names)

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(lines(self._path), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                what = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
                raise UsageError(f"line {number} is no JSON ({what})", where=self._path) from None
            if not isinstance(record, dict):
                raise UsageError(f"line {number} is no JSON object", where=self._path)
            if "\\ud" in line.lower() and not _is_unicode(record):
                raise UsageError(f"line {number} holds half a character (a lone surrogate)", where=self._path)
            yield number, record

    def rows(self) -> Iterator[tuple[int, Sequence[Any]]]:
        for number, record in self._records():
            yield number, [record.get(name) for name in self.columns]

    def column(self, name: str) -> Column:
        return JsonColumn()


def _is_unicode(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
