"""Plans as mathematics: nothing lost, groups whole, shards even, and stable when data is added."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.compile.plan import Draft, cut, draft
from shardforge.errors import UsageError
from shardforge.recipe import load_recipe
from shardforge.sources.item import Item, Scan, SourceFile

names = st.lists(st.text("abcdefgh/.é", min_size=1, max_size=12), min_size=1, max_size=60, unique=True)


def make_scan(sources: list[str], groups: int = 0) -> Scan:
    items = [
        Item(
            source=source,
            files={"image": SourceFile(source, len(source), i)},
            label=f"class {i % 3}",
            group=f"g{i % groups}" if groups else None,
        )
        for i, source in enumerate(sorted(sources))
    ]
    return Scan("class folders", items, [], {}, False, [])


def plan(scan: Scan, **options: Any) -> Draft:
    return draft(scan, load_recipe(None, options))


@given(names, st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_every_item_has_one_place_whatever_the_seed(sources: list[str], seed: int) -> None:
    rows = plan(make_scan(sources), seed=seed).rows
    assert Counter(rows["source"].to_pylist()) == Counter(sources)
    assert rows["key"].to_pylist() == [f"{i:09d}" for i in range(len(sources))]


@given(names, names, st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_more_data_moves_nothing_and_keeps_the_relative_order(one: list[str], two: list[str], seed: int) -> None:
    before = plan(make_scan(one), seed=seed).rows["source"].to_pylist()
    after = plan(make_scan(list({*one, *two})), seed=seed).rows["source"].to_pylist()
    assert [source for source in after if source in set(one)] == before


@given(st.integers(1, 400), st.integers(1, 50), st.integers(1, 10**6))
@settings(max_examples=150, deadline=None)
def test_shards_cover_the_plan_evenly(count: int, most: int, sample_bytes: int) -> None:
    drafted = plan(make_scan([f"{i}" for i in range(count)]), shard_samples=most, shard_size=2_000_000)
    shards = cut(drafted, sample_bytes)
    assert [shard.start for shard in shards] == [0, *(shard.stop for shard in shards[:-1])]
    assert shards[-1].stop == count
    sizes = [shard.stop - shard.start for shard in shards]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1
    assert max(sizes) <= max(1, min(most, 2_000_000 // sample_bytes))
    assert [shard.name for shard in shards] == [f"train-{i:06d}" for i in range(len(shards))]


@pytest.mark.parametrize(("items", "shards"), [(1, 1), (63, 1), (127, 1), (128, 2), (511, 7), (512, 8), (5000, 8)])
def test_small_splits_are_shared_out_among_workers(items: int, shards: int) -> None:
    assert len(cut(plan(make_scan([f"{i}" for i in range(items)])), 1000)) == shards


@given(st.integers(0, 6))
@settings(deadline=None)
def test_a_group_never_crosses_a_split(seed: int) -> None:
    rows = plan(make_scan([f"{i}" for i in range(200)], groups=23), seed=seed, split="train=0.6,val=0.4").rows
    found: dict[str, set[str]] = {}
    for group, split in zip(rows["group"].to_pylist(), rows["split"].to_pylist(), strict=True):
        found.setdefault(group, set()).add(split)
    assert all(len(splits) == 1 for splits in found.values())
    assert len(found) == 23


def test_splits_stand_one_after_the_other_train_first() -> None:
    rows = plan(make_scan([f"{i}" for i in range(100)]), split="val=0.3,train=0.5,a=0.2").rows
    splits = rows["split"].to_pylist()
    assert splits == sorted(splits, key=lambda name: (name != "train", name))


def test_an_item_without_a_split_of_its_own_is_named() -> None:
    scan = make_scan(["a", "b"])
    scan.splits_declared = True
    with pytest.raises(UsageError, match=r"2 items have no split .*\(a, for one\)"):
        plan(scan)


def test_two_answers_to_which_split_are_refused() -> None:
    scan = make_scan(["a", "b"])
    scan.splits_declared = True
    with pytest.raises(UsageError, match="--split-by hash"):
        plan(scan, split="train=0.5,val=0.5")


def test_inputs_have_one_digest_for_content_and_one_for_times() -> None:
    one, two = make_scan(["a", "b"]), make_scan(["a", "b"])
    two.items[0] = Item("a", {"image": SourceFile("a", 1, 99)}, label="class 0")
    first, second = plan(one).inputs, plan(two).inputs
    assert first.content == second.content
    assert first.times != second.times
    two.items[0] = Item("a", {"image": SourceFile("a", 2, 0)}, label="class 0")
    assert plan(two).inputs.content != first.content
