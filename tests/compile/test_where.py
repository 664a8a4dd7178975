"""``where``: understood as SQL understands it, and never evaluated as code."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.compile.where import rows_where
from shardforge.errors import UsageError

COLUMNS = {
    "age": pa.array([1, 20, None, 40]),
    "weight": pa.array([0.5, 1.5, 2.5, None]),
    "sex": pa.array(["f", "m", None, "it's"]),
    "ok": pa.array([True, False, None, True]),
    "two words": pa.array([1, 2, 3, 4], pa.int8()),
    "a.b": pa.array([1, 2, 3, 4], pa.uint64()),
    "price": pa.array([Decimal("1.5"), Decimal("2.0"), None, Decimal("3.5")]),
    "boxes": pa.array([[1], [2], None, []]),
}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age >= 18", [1, 3]),
        ("18 <= age", [1, 3]),
        ("age = 20.0", [1]),
        ("age <> 20", [0, 3]),
        ("age < weight", []),
        ("-1 < age", [0, 1, 3]),
        ("age in (1, 40)", [0, 3]),
        ("age in (1.0, 20)", [0, 1]),
        ("age not in (1, 40)", [1]),
        ("not age in (1)", [1, 3]),
        ("weight in (1.5, 7)", [1]),
        ("`two words` in (2, 300)", [1]),
        ("`two words` > 2", [2, 3]),
        ("`a.b` > 2 and `a.b` < 4", [2]),
        ("price > 1.75", [1, 3]),
        ("sex = 'it''s'", [3]),
        ("sex in (\"f\", 'm')", [0, 1]),
        ("sex >= 'i'", [1, 3]),
        ("ok", [0, 3]),
        ("not ok", [1]),
        ("ok = false", [1]),
        ("boxes is null", [2]),
        ("boxes is not null and age is null", []),
        ("NOT (age = 1) AND TRUE = ok", [3]),
        ("ok or age = 20 and sex = 'x'", [0, 3]),
        ("not ok or age = 1", [0, 1]),
        (" age\n=\t1 ", [0]),
        (" or ".join(["age = 1"] * 499), [0]),
        ("(" * 40 + "ok" + ")" * 40, [0, 3]),
    ],
)
def test_conditions(text: str, rows: list[int]) -> None:
    assert rows_where(text, COLUMNS) == rows


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", 1, "it ends"),
        ("age", 4, "expected a comparison"),
        ("age >", 6, "it ends"),
        ("age > 'x'", 7, "is a number, 'x' text"),
        ("sex in (1)", 9, "is text, 1 a number"),
        ("agee > 1", 1, r"\(did you mean 'age'\?\).*age, weight, sex"),
        ("boxes = 1", 1, "is null"),
        ("age > 1 and", 12, "it ends"),
        ("(age > 1", 9, r"expected \)"),
        ("age > 1)", 8, r"'\)' stands there"),
        ("age = 1 = 2", 9, "expected and, or, or the end"),
        ("age # 1", 5, "'#' is not understood"),
        ("age in ()", 9, "a literal"),
        ("age in (weight)", 9, "no literal"),
        ("'a", 1, "not understood"),
        ("1a = 2", 1, "not understood"),
        ("null", 1, "'null' stands there"),
        ("age is 3", 8, "expected null"),
        ("age = 99999999999999999999", 7, "too large"),
        ("__import__('os')", 1, "no column '__import__'"),
        ("age.__class__", 4, "not understood"),
        ("(" * 100 + "ok" + ")" * 100, 51, "within each other"),
        (" or ".join(["ok"] * 501), 3001, "more than 500 conditions"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, place: int, words: str) -> None:
    with pytest.raises(UsageError, match=rf"(?s)where: at character {place} of .*{words}"):
        rows_where(text, COLUMNS)


def test_an_endless_condition_is_refused() -> None:
    with pytest.raises(UsageError, match="longer than"):
        rows_where("ok or " * 10_000 + "ok", COLUMNS)


literal = st.one_of(st.integers(-3, 3).map(str), st.sampled_from(["1.5", "-0.5"]))
column = st.sampled_from(["x", "y"])
signs = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
several = st.lists(literal, min_size=1).map(", ".join)
leaf = st.one_of(
    st.builds("{} {} {}".format, column, signs, st.one_of(column, literal)),
    st.builds("{} {} ({})".format, column, st.sampled_from(["in", "not in"]), several),
    st.builds("{} {}".format, column, st.sampled_from(["is null", "is not null"])),
)
condition = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner),
        inner.map("not {}".format),
        inner.map("({})".format),
    ),
    max_leaves=8,
)


@given(condition)
@settings(max_examples=150, deadline=None)
def test_sqlite_agrees(text: str) -> None:
    values: list[Any] = [None, -1, 0, 1, 2, 3]
    pairs = [(x, None if y is None else y / 2) for x in values for y in values]
    with sqlite3.connect(":memory:") as base:
        base.execute("create table t (n integer, x integer, y real)")
        base.executemany("insert into t values (?, ?, ?)", [(n, *pair) for n, pair in enumerate(pairs)])
        expected = [row[0] for row in base.execute(f"select n from t where {text} order by n")]
    columns = {"x": pa.array([x for x, _ in pairs], pa.int32()), "y": pa.array([y for _, y in pairs], pa.float32())}
    assert rows_where(text, columns) == expected
