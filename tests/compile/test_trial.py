"""The trial before a build: which items it tries, by what the plan knows alone."""

from __future__ import annotations

import pytest

from shardforge.compile.plan import Draft, draft
from shardforge.compile.trial import choose_items
from shardforge.recipe import load_recipe
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import Item, Scan, SourceFile

MIB = 1 << 20


def planned(sizes: list[int], seed: int = 0) -> Draft:
    items = [Item(f"{i:04d}.jpg", {"image": SourceFile(f"{i:04d}.jpg", size, 0)}) for i, size in enumerate(sizes)]
    return draft(Scan("flat folder", items, [], {}, False, []), load_recipe(None, {"seed": seed}))


@pytest.mark.parametrize(
    ("size", "tried"),
    [
        (50_000, 24),  # 1.2 MB in all
        (MIB, 16),  # up to 16 MiB
        (5 * MIB, 8),  # no fewer
        (200 * MIB, 8),
    ],
)
def test_large_files_are_tried_less_often(size: int, tried: int) -> None:
    assert len(choose_items(planned([size] * 100))) == tried


def test_the_choice_is_seeded_without_repetition_and_all_of_a_few() -> None:
    chosen = choose_items(planned([1000] * 100))
    assert len(set(chosen)) == 24
    assert choose_items(planned([1000] * 100)) == chosen
    assert choose_items(planned([1000] * 100, seed=1)) != chosen
    assert sorted(choose_items(planned([1000] * 5))) == [0, 1, 2, 3, 4]


def test_items_known_to_fail_teach_nothing_of_sizes() -> None:
    items = [
        Item(f"{i}.jpg", {"image": SourceFile(f"{i}.jpg", 9, 0)}, problem=Reason.MISSING_FILE if i % 2 else None)
        for i in range(20)
    ]
    drafted = draft(Scan("flat folder", items, [], {}, False, []), load_recipe(None, {}))
    names = drafted.rows["source"].to_pylist()
    assert sorted(int(names[row][:-4]) for row in choose_items(drafted)) == list(range(0, 20, 2))
