"""The type of a table's column, found from all its values, and the values in that type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_MOST_DIGITS = 20
_NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT64 = range(-(2**63), 2**63)
_EXACT_IN_FLOAT64 = range(-(2**53), 2**53 + 1)
_CHUNK = 4096


Settled = tuple[pa.DataType, Callable[[Any], Any]]
"""A column's type, and what turns a cell (not None) into a value of that type."""


class Column(Protocol):
    """A column whose type is found by looking at all its cells."""

    def see(self, cell: Any) -> None:
        """Takes a cell into account; None is an empty one."""

    def settle(self) -> Settled:
        """The outcome, once every cell was seen."""


class TextColumn:
    """A column of text cells. It becomes int64, float64 or bool only where no cell would read differently as text:
    ``007``, ``+1``, ``1e`` or a mixture keep the whole column text."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()

    def see(self, cell: Any) -> None:
        if cell is not None and "text" not in self._kinds:
            self._kinds.add(_kind(cell))

    def settle(self) -> Settled:
        kinds = self._kinds
        if kinds and kinds <= {"int", "long"}:
            return pa.int64(), int
        if kinds and kinds <= {"int", "float"}:
            return pa.float64(), float
        return (pa.bool_(), _TRUTH.__getitem__) if kinds == {"bool"} else (pa.string(), str)


def _kind(cell: str) -> str:
    if _INTEGER.fullmatch(cell):
        if len(cell) > _MOST_DIGITS:
            return "text"
        number = int(cell)
        if number in _EXACT_IN_FLOAT64:
            return "int"
        return "long" if number in _INT64 else "text"
    if _NUMBER.fullmatch(cell):
        return "float"
    return "bool" if cell in _TRUTH else "text"


class JsonColumn:
    """A column of JSON values. Its type is what Arrow finds for all of them together (int and float make float64);
    values that have no common type become JSON text, words staying as they are."""

    def __init__(self) -> None:
        self._chunk: list[Any] = []
        self._type: pa.DataType = pa.null()
        self._text = False

    def see(self, cell: Any) -> None:
        if not self._text:
            self._chunk.append(cell)
            if len(self._chunk) >= _CHUNK:
                self._merge()

    def _merge(self) -> None:
        chunk, self._chunk = self._chunk, []
        try:
            found = pa.array(chunk).type
            fields = [pa.schema([("x", self._type)]), pa.schema([("x", found)])]
            self._type = pa.unify_schemas(fields, promote_options="permissive").field("x").type
        except (pa.ArrowException, OverflowError):
            self._text = True

    def settle(self) -> Settled:
        self._merge()
        if self._text or pa.types.is_null(self._type):
            return pa.string(), _as_text
        return self._type, float if self._type == pa.float64() else _unchanged


class TypedColumn:
    """A column whose file says its type; dictionary-encoded columns count as what they encode."""

    def __init__(self, declared: pa.DataType) -> None:
        self._type = declared.value_type if pa.types.is_dictionary(declared) else declared

    def see(self, cell: Any) -> None:
        """Nothing to learn: the file has said it."""

    def settle(self) -> Settled:
        return self._type, _unchanged


def _unchanged(cell: Any) -> Any:
    return cell


def _as_text(cell: Any) -> str:
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, sort_keys=True)


class Table(Protocol):
    """A table that is read several times, a bounded part at a time.

    Attributes:
        where: the file.
        unit: what its numbers count, ``line`` or ``row``.
        columns: names in order.
    """

    where: str
    unit: str
    columns: tuple[str, ...]

    def rows(self) -> Iterator[tuple[int, Sequence[Any]]]:
        """Number (from 1) and cells, one per column, None where empty."""

    def column(self, name: str) -> Column:
        """A fresh column of the kind this table has, for the values of ``name``."""
