"""Splits: groups whole, shares as asked for, and stable when data is added."""

from __future__ import annotations

import hashlib
from collections import Counter
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.compile.split import freeze, hash_split, stratified_split

SHARES = {"train": Decimal("0.7"), "test": Decimal("0.1"), "val": Decimal("0.2")}


def test_thresholds_cut_the_range_of_the_hash_as_the_shares_say() -> None:
    for name in (f"patient-{i}" for i in range(2000)):
        text = f"5\0split\0{name}".encode()
        place = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
        expected = "train" if place < 0.7 else "test" if place < 0.8 else "val"
        assert hash_split(name, 5, SHARES) == expected


def test_shares_come_out_as_asked_for_within_chance() -> None:
    counts = Counter(hash_split(f"item {i}", 1, SHARES) for i in range(20_000))
    for name, share in SHARES.items():
        expected, deviation = 20_000 * float(share), (20_000 * float(share) * (1 - float(share))) ** 0.5
        assert abs(counts[name] - expected) < 5 * deviation


def test_the_seed_matters() -> None:
    names = [str(i) for i in range(200)]
    assert [hash_split(n, 0, SHARES) for n in names] != [hash_split(n, 1, SHARES) for n in names]


labels = st.lists(st.integers(0, 3), min_size=0, max_size=2)
items = st.lists(st.tuples(st.integers(0, 30).map(str), labels), min_size=3, max_size=150)


@given(items, st.integers(0, 5))
@settings(max_examples=150, deadline=None)
def test_stratified_keeps_groups_whole_and_fills_every_split(rows: list[tuple[str, list[int]]], seed: int) -> None:
    groups, strata = [group for group, _ in rows], [label for _, label in rows]
    chosen = stratified_split(groups, strata, seed, SHARES, {})
    assert set(chosen) == set(groups)
    if len(set(groups)) >= 3:
        assert set(chosen.values()) == set(SHARES)


def test_stratified_balances_labels_to_the_item() -> None:
    groups = [str(i) for i in range(1000)]
    strata = [[0] if i % 10 else [1] for i in range(1000)]
    chosen = stratified_split(groups, strata, 0, SHARES, {})
    counts = Counter((chosen[group], label[0]) for group, label in zip(groups, strata, strict=True))
    assert abs(counts["train", 1] - 70) <= 1
    assert abs(counts["val", 1] - 20) <= 1
    assert abs(counts["test", 1] - 10) <= 1
    assert abs(counts["train", 0] - 630) <= 1


def test_frozen_groups_stay_where_they_are_when_data_is_added() -> None:
    groups = [str(i) for i in range(50)]
    before = stratified_split(groups, [[0]] * 50, 0, SHARES, {})
    digests = freeze(before.items())
    frozen = {digest: split for split, members in digests.items() for digest in members}
    more = groups + [f"new {i}" for i in range(50)]
    after = stratified_split(more, [[0]] * 100, 0, SHARES, frozen)
    assert {group: after[group] for group in groups} == before
    counts = Counter(after.values())
    assert counts == {"train": 70, "val": 20, "test": 10}


@given(items, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_stratified_does_not_depend_on_the_order_of_items(rows: list[tuple[str, list[int]]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(rows, len(rows))
    one = stratified_split([g for g, _ in rows], [s for _, s in rows], 3, SHARES, {})
    two = stratified_split([g for g, _ in shuffled], [s for _, s in shuffled], 3, SHARES, {})
    assert one == two
