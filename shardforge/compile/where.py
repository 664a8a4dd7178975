"""``where``: a small language of conditions over a table's columns, turned into a pyarrow expression. Nothing is
evaluated but comparisons.

    age >= 18 and sex in ('f', 'm') and (site = "north" or not reviewed is null)

A column is a word, or anything in backticks. A literal is a number, true or false, or text in single or double quotes
(a doubled quote stands for itself). Columns and literals of one kind compare with ``= == != <> < <= > >=``;
further ``in (…)``, ``not in (…)``, ``is null``, ``is not null``, ``not``, ``and``, ``or`` (in this order of binding),
and parentheses. A column of true and false is a condition by itself. As in SQL, a comparison with an empty cell is
neither true nor false, and a row is kept only where the whole is true.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from shardforge.errors import UsageError

_LONGEST = 10_000
_DEEPEST = 50
_MOST_TERMS = 500
Kind = Literal["number", "text", "truth", "other"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w))"""
    r"""|(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")|(?P<quoted>`[^`]+`)|(?P<word>[^\W\d]\w*)"""
    r"""|(?P<sign><=|>=|<>|!=|==|[=<>(),]))"""
)
_KEYWORDS = frozenset(("and", "or", "not", "in", "is", "null", "true", "false"))
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Token(NamedTuple):
    kind: str
    text: str
    place: int

    @property
    def sign(self) -> str:
        """What it means as a sign or keyword; "" for a name or literal."""
        return self.text.lower() if self.kind in ("sign", "keyword") else ""


@dataclass(frozen=True)
class _Operand:
    """A column or literal: its kind, how people are told of it, the value of a literal, whether it holds integers."""

    expression: pc.Expression
    kind: Kind
    told: str
    place: int
    literal: Any = None
    whole: bool = False


def parse_where(text: str, columns: Mapping[str, pa.DataType]) -> pc.Expression:
    """The condition as an expression over columns.

    Raises:
        UsageError: it cannot be understood; says at which character (from 1), or which columns there are.
    """
    if len(text) > _LONGEST:
        raise UsageError(f"where: longer than {_LONGEST:,} characters")
    return _Parser(text, columns).parse()


def names_in(text: str) -> set[str]:
    """The names of columns in a condition."""
    found = (match for match in _TOKEN.finditer(text))
    words = {match["word"] for match in found if match["word"] and match["word"].lower() not in _KEYWORDS}
    return words | {match["quoted"][1:-1] for match in _TOKEN.finditer(text) if match["quoted"]}


def rows_where(text: str, columns: Mapping[str, pa.Array]) -> list[int]:
    """Numbers of the rows for which the condition is true, ascending.

    Raises:
        UsageError: as :func:`parse_where`.
    """
    condition = parse_where(text, {name: column.type for name, column in columns.items()})
    length = max((len(column) for column in columns.values()), default=0)
    table = pa.table({**columns, "\0row": pa.array(range(length), pa.int64())})
    try:
        return sorted(table.filter(condition)["\0row"].to_pylist())
    except pa.ArrowException as error:
        raise UsageError(f"where: {str(error).splitlines()[0]}") from None


class _Parser:
    def __init__(self, text: str, columns: Mapping[str, pa.DataType]) -> None:
        self._text, self._columns = text, columns
        self._tokens = self._split()
        self._at = self._depth = self._terms = 0

    def parse(self) -> pc.Expression:
        found = self._any()
        if self._next.kind != "end":
            raise self._wrong("expected and, or, or the end")
        return found

    def _split(self) -> list[_Token]:
        tokens, at = [], 0
        end = len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                raise self._error(f"{self._text[at]!r} is not understood", at)
            kind, word = match.lastgroup, match[match.lastgroup]
            if kind == "word" and word.lower() in _KEYWORDS:
                kind = "keyword"
            tokens.append(_Token(kind, word, match.start(match.lastgroup)))
            at = match.end()
        return [*tokens, _Token("end", "", end)]

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *signs: str) -> _Token | None:
        """The next token, if it is one of these signs or keywords."""
        token = self._next
        if token.sign not in signs or not token.sign:
            return None
        self._at += 1
        return token

    def _need(self, sign: str) -> None:
        if self._take(sign) is None:
            raise self._wrong(f"expected {sign}")

    def _any(self) -> pc.Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(f"more than {_DEEPEST} parentheses within each other", self._next.place)
        found = self._all()
        while self._take("or"):
            found = found | self._all()
        self._depth -= 1
        return found

    def _all(self) -> pc.Expression:
        found = self._negation()
        while self._take("and"):
            found = found & self._negation()
        return found

    def _negation(self) -> pc.Expression:
        negated = False
        while self._take("not"):
            negated = not negated
        found = self._condition()
        return ~found if negated else found

    def _condition(self) -> pc.Expression:
        self._terms += 1
        if self._terms > _MOST_TERMS:
            raise self._error(f"more than {_MOST_TERMS} conditions", self._next.place)
        if self._take("("):
            found = self._any()
            self._need(")")
            return found
        left = self._operand()
        if self._take("is"):
            inverted = self._take("not") is not None
            self._need("null")
            return left.expression.is_valid() if inverted else left.expression.is_null()
        inverted = self._take("not") is not None
        if inverted or self._next.sign == "in":
            self._need("in")
            found = self._member(left)
            return ~found if inverted else found
        sign = self._take(*_COMPARISONS)
        if sign is None:
            if left.kind == "truth" and left.literal is None:
                return left.expression
            raise self._wrong(f"expected a comparison after {left.told}")
        right = self._operand()
        self._check_kinds(left, right)
        compared: pc.Expression = _COMPARISONS[sign.sign](left.expression, right.expression)
        return compared

    def _member(self, left: _Operand) -> pc.Expression:
        self._need("(")
        values = []
        while True:
            entry = self._operand()
            if entry.literal is None:
                raise self._error(f"{entry.told} is no literal", entry.place)
            self._check_kinds(left, entry)
            values.append(entry.literal)
            if self._take(")"):
                break
            self._need(",")
        whole = left.whole and all(isinstance(value, int) for value in values)
        kind = {"number": pa.int64() if whole else pa.float64(), "text": pa.string(), "truth": pa.bool_()}[left.kind]
        options = pa.array([float(value) for value in values] if kind == pa.float64() else values, kind)
        # isin compares values of one type only.
        column = left.expression.cast(kind)
        # isin is false for an empty cell, and must be neither.
        found: pc.Expression = pc.if_else(column.is_valid(), column.isin(options), pc.scalar(None).cast(pa.bool_()))
        return found

    def _check_kinds(self, left: _Operand, right: _Operand) -> None:
        for side in (left, right):
            if side.kind == "other":
                raise self._error(f"{side.told} can only be compared with is null", side.place)
        if left.kind != right.kind:
            raise self._error(f"{left.told} is {_NOUNS[left.kind]}, {right.told} {_NOUNS[right.kind]}", right.place)

    def _operand(self) -> _Operand:
        token = self._next
        if token.kind in ("word", "quoted"):
            self._at += 1
            return self._column(token)
        value: Any
        match token.kind:
            case "number":
                value = float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
                if isinstance(value, int) and not -(2**63) <= value < 2**63:
                    raise self._error(f"{token.text} is too large", token.place)
                kind: Kind = "number"
            case "text":
                quote = token.text[0]
                value, kind = token.text[1:-1].replace(quote * 2, quote), "text"
            case "keyword" if token.sign in ("true", "false"):
                value, kind = token.sign == "true", "truth"
            case _:
                raise self._wrong("expected a column or a literal")
        self._at += 1
        return _Operand(pc.scalar(value), kind, token.text, token.place, value, isinstance(value, int))

    def _column(self, token: _Token) -> _Operand:
        name = token.text.strip("`") if token.kind == "quoted" else token.text
        if name not in self._columns:
            near = difflib.get_close_matches(name, list(self._columns), 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            known = ", ".join(self._columns)
            raise self._error(f"there is no column {name!r}{hint}", token.place, f"The columns are: {known}.")
        found = self._columns[name]
        whole = pa.types.is_integer(found)
        return _Operand(pc.field((name,)), _kind(found), f"the column {name!r}", token.place, whole=whole)

    def _wrong(self, expected: str) -> UsageError:
        token = self._next
        there = "it ends" if token.kind == "end" else f"{token.text!r} stands there"
        return self._error(f"{expected}, but {there}", token.place)

    def _error(self, what: str, place: int, todo: str | None = None) -> UsageError:
        return UsageError(f"where: at character {place + 1} of {self._text!r}: {what}", todo=todo)


_NOUNS = {"number": "a number", "text": "text", "truth": "true or false", "other": "something else"}


def _kind(found: pa.DataType) -> Kind:
    if pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found):
        return "number"
    if pa.types.is_string(found) or pa.types.is_large_string(found):
        return "text"
    return "truth" if pa.types.is_boolean(found) else "other"
