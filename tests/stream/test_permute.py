"""Keyed permutations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from shardforge.stream.permute import SORTED, key_of, permute, uniforms, words

ALARM = 1e-6
"""Chance of a false alarm per test; keys are fixed, so a test that passes once passes always."""


def keys(count: int) -> np.ndarray:
    return words(key_of("test"), np.arange(count, dtype=np.uint64))


def test_words_are_splitmix64() -> None:
    # First outputs of SplitMix64 with seed 1234567, from the reference implementation's published test vector.
    found = words(np.uint64(1234567), np.arange(5, dtype=np.uint64))
    assert found.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("size", [1, 2, 3, SORTED - 1, SORTED, SORTED + 1, 300, 1024, 4097, 65_537])
def test_every_value_is_reached_once(size: int) -> None:
    for key in keys(3):
        sent = permute(np.arange(size, dtype=np.uint64), size, np.full(size, key))
        assert np.array_equal(np.sort(sent), np.arange(size))


@pytest.mark.parametrize("size", [2, 3, 5])
def test_all_permutations_of_a_small_set_are_equally_likely(size: int) -> None:
    trials = 24_000
    columns = [permute(np.full(trials, value, np.uint64), size, keys(trials)) for value in range(size)]
    number = {p: i for i, p in enumerate(itertools.permutations(range(size)))}
    counts = np.bincount([number[p] for p in zip(*(c.tolist() for c in columns), strict=True)], minlength=len(number))
    assert chisquare(counts).pvalue > ALARM


@pytest.mark.parametrize("size", [8, 9, SORTED, SORTED + 1, 400, 1000])
def test_places_and_pairs_are_uniform(size: int) -> None:
    trials = 100 * size
    sent = [permute(np.full(trials, value, np.uint64), size, keys(trials)).astype(int) for value in (0, 1, size - 1)]
    for column in sent:
        assert chisquare(np.bincount(column, minlength=size)).pvalue > ALARM
    for one, other in itertools.combinations(sent, 2):
        assert chisquare(np.bincount((one - other) % size, minlength=size)[1:]).pvalue > ALARM


def test_odd_and_even_permutations_are_equally_likely_where_a_feistel_network_would_be_biased() -> None:
    trials, size = 4000, 8
    columns = [permute(np.full(trials, value, np.uint64), size, keys(trials)) for value in range(size)]
    table = np.stack(columns, axis=1).astype(int)
    inversions = sum((table[:, i] > table[:, j]).astype(int) for i in range(size) for j in range(i + 1, size))
    assert chisquare(np.bincount(inversions % 2, minlength=2)).pvalue > ALARM


def test_each_value_follows_its_own_key() -> None:
    size, mixed = 1000, keys(50)
    together = permute(np.arange(50, dtype=np.uint64), size, mixed)
    alone = [permute(np.array([i], np.uint64), size, mixed[i : i + 1])[0] for i in range(50)]
    assert together.tolist() == alone


def test_uniforms_fill_the_unit_interval() -> None:
    drawn = uniforms(key_of("u"), np.arange(100_000, dtype=np.uint64))
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert chisquare(np.bincount((drawn * 100).astype(int), minlength=100)).pvalue > ALARM


def test_keys_keep_their_parts_apart() -> None:
    assert key_of("a", "bc") != key_of("ab", "c")
    assert key_of(1, 23) != key_of(12, 3)
