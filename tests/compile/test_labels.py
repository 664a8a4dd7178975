"""Labels: which kind they are, their classes, and what happens to those that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from shardforge.compile.labels import label_items, strata
from shardforge.errors import UsageError
from shardforge.recipe import load_recipe
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Item, Label


def items(*labels: Label) -> list[Item]:
    return [Item(source=f"{i}.jpg", files={}, label=label) for i, label in enumerate(labels)]


def label(*labels: Label, folders: bool = False, **options: Any) -> Any:
    if "label" in options:
        options["table"] = "t.csv"
    return label_items(items(*labels), load_recipe(None, options), from_folders=folders)


def test_words_are_classes_sorted_by_name() -> None:
    found = label("dog", "cat", "dog")
    assert (found.info.kind, found.classes, found.values) == ("class", {"cat": 0, "dog": 1}, [1, 0, 1])


def test_integers_are_classes_sorted_by_value() -> None:
    found = label("10", "9", "0")
    assert (found.info.kind, found.classes) == ("class", {"0": 0, "9": 1, "10": 2})
    assert label(10, 9, 0).classes == found.classes


def test_numbers_with_decimals_are_regression() -> None:
    assert label("1.5", "2", "-3e2").values == [1.5, 2.0, -300.0]
    assert label(0.5, 2.0).info.kind == "number"


def test_folder_names_are_classes_even_when_they_look_like_numbers() -> None:
    assert label("1.5", "2.5", folders=True).info.kind == "class"


def test_lists_are_several_classes() -> None:
    found = label(("b", "a"), ("c",), ())
    assert (found.info.kind, found.classes) == ("multi", {"a": 0, "b": 1, "c": 2})
    assert found.values == [[0, 1], [2], []]
    assert found.names[0] == ["a", "b"]


def test_columns_of_zeros_and_ones_are_multi_hot_in_column_order() -> None:
    found = label(("1", "0"), ("1", "1"), ("", "0.0"), label=("zebra", "ape"))
    assert (found.info.kind, found.classes) == ("multi", {"zebra": 0, "ape": 1})
    assert found.values == [[0], [0, 1], []]


def test_columns_of_truth_values_are_multi_hot_as_tables_write_them() -> None:
    found = label(("True", "False"), ("FALSE", "true"), (1, 0), label=("cat", "dog"))
    assert (found.info.kind, found.values) == ("multi", [[0], [1], [0]])
    found = label(("True", "34"), ("False", "2.5"), label=("ok", "age"))
    assert (found.info.kind, found.values) == ("number", [[1.0, 34.0], [0.0, 2.5]])


def test_columns_of_words_are_refused_before_any_work() -> None:
    with pytest.raises(UsageError, match=r"neither 0 and 1 nor numbers \('sick', for one\)"):
        label(("sick", "old"), ("well", ""), label=("state", "age"))


def test_columns_of_numbers_are_a_vector() -> None:
    found = label(("1.5", "2"), ("0", "1"), label=("x", "y"))
    assert (found.info.kind, found.info.size, found.values) == ("number", 2, [[1.5, 2.0], [0.0, 1.0]])


def test_no_labels_at_all() -> None:
    assert label(None, None).info.kind == "none"


def test_misfits_fail_with_a_reason_and_nothing_is_lost() -> None:
    found = label(0.5, None, "high", float("nan"), label_kind="number")
    assert found.problems == [None, Reason.MISSING_LABEL, Reason.BAD_LABEL, Reason.BAD_LABEL]
    found = label("cat", "cow", classes=("dog", "cat"))
    assert (found.classes, found.values, found.problems) == (
        {"dog": 0, "cat": 1},
        [1, None],
        [None, Reason.BAD_LABEL],
    )


def test_asking_for_labels_where_there_are_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no item has a label"):
        label(None, label_kind="class")


def test_regression_is_stratified_by_deciles() -> None:
    found = label(*[float(i) + 0.5 for i in range(20)])
    assert [bucket[0] for bucket in strata(found)] == [i // 2 for i in range(20)]
