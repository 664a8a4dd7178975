"""The order of an epoch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

from shardforge.errors import UsageError
from shardforge.stream.order import ORDER_VERSION, SLICE, SampleOrder

ALARM = 1e-6
GOLDEN = Path(__file__).parent / f"order-{ORDER_VERSION}.json"


def order(
    counts: list[int], shuffle: bool | int = True, *, seed: int = 0, epoch: int = 0, **more: object
) -> SampleOrder:
    return SampleOrder("fingerprint", seed, epoch, counts, shuffle, **more)  # type: ignore[arg-type]


def whole(some: SampleOrder) -> list[int]:
    return some.at(np.arange(len(some))).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("shuffle", [True, False, 1, 7, 64, 300, 10**9])
@pytest.mark.parametrize("counts", [[1], [5], [0, 3, 0], [64, 64], [65, 1, 130, 7], [1000, 500]])
def test_every_sample_stands_at_one_place(counts: list[int], shuffle: bool | int) -> None:
    assert sorted(whole(order(counts, shuffle))) == list(range(sum(counts)))


def test_places_can_be_asked_in_any_order_and_portion() -> None:
    some = order([100, 200, 33], 50)
    together, places = whole(some), np.random.default_rng(0).permutation(333)
    assert some.at(places).tolist() == [together[p] for p in places]
    assert [int(some.at(np.array([p]))[0]) for p in range(333)] == together


def test_without_shuffling_samples_stand_as_stored() -> None:
    assert whole(order([3, 4], False)) == list(range(7))


def test_seed_epoch_and_fingerprint_each_change_the_order() -> None:
    orders = [whole(order([500])), whole(order([500], seed=1)), whole(order([500], epoch=1))]
    orders.append(SampleOrder("another", 0, 0, [500], True).at(np.arange(500)).tolist())
    assert len({tuple(o) for o in orders}) == 4


def test_seed_and_epoch_are_not_interchangeable() -> None:
    assert whole(order([500], seed=1, epoch=2)) != whole(order([500], seed=2, epoch=1))


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("shuffle", [True, 2])
def test_small_datasets_are_shuffled_uniformly_over_epochs(size: int, shuffle: bool | int) -> None:
    epochs = np.array([whole(order([size], shuffle, epoch=e)) for e in range(3000)])
    if shuffle is True:
        for place in range(size):
            assert chisquare(np.bincount(epochs[:, place], minlength=size)).pvalue > ALARM
    else:
        # One slice, so windows of two stay where they are and swap half of the time.
        for start in range(0, size - size % 2, 2):
            assert chisquare(np.bincount(epochs[:, start] - start, minlength=2)).pvalue > ALARM


def test_a_large_dataset_is_shuffled_uniformly() -> None:
    counts, tenths = [500] * 4, np.zeros((10, 10))
    for epoch in range(30):
        places = np.array(whole(order(counts, epoch=epoch)))
        np.add.at(tenths, (np.arange(2000) // 200, places // 200), 1)
    assert chisquare(tenths.ravel()).pvalue > ALARM


def test_a_window_mixes_only_what_slices_brought_near() -> None:
    some = whole(order([SLICE * 100], SLICE * 4))
    for start in range(0, len(some), SLICE * 4):
        assert len({sample // SLICE for sample in some[start : start + SLICE * 4]}) == 4


def test_a_window_spreads_a_sorted_dataset_over_batches() -> None:
    # Distinct classes per batch of 256 from 100 sorted classes: 92.4 for a perfect shuffle, 1.2 for a chunk shuffle.
    labels = np.repeat(np.arange(100), 1000)
    mixed = labels[np.array(whole(order([1000] * 100, 16_384)))]
    assert np.mean([len(np.unique(mixed[i : i + 256])) for i in range(0, 99_840, 256)]) > 75
    full = labels[np.array(whole(order([1000] * 100)))]
    assert np.mean([len(np.unique(full[i : i + 256])) for i in range(0, 99_840, 256)]) == pytest.approx(92.4, abs=0.5)


def test_weighted_draws_follow_the_weights() -> None:
    weights = np.array([1.0, 0.0, 3.0, 6.0, 0.0])
    drawn = np.concatenate([whole(order([5], epoch=e, weights=weights)) for e in range(4000)])
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == counts[4] == 0
    assert chisquare(counts[[0, 2, 3]], len(drawn) * np.array([0.1, 0.3, 0.6])).pvalue > ALARM


@pytest.mark.parametrize(
    ("weights", "shuffle"),
    [
        ([1.0, 2.0], True),
        ([1.0, -1.0, 1.0], True),
        ([0.0, 0.0, 0.0], True),
        ([1.0, float("nan"), 1.0], True),
        ([1.0, float("inf"), 1.0], True),
        ([1.0, 1.0, 1.0], False),
        ([1.0, 1.0, 1.0], 16),
    ],
)
def test_unusable_weights_are_refused(weights: list[float], shuffle: bool | int) -> None:
    with pytest.raises(UsageError):
        order([3], shuffle, weights=np.array(weights))


@pytest.mark.parametrize("shuffle", [0, -1])
def test_a_window_below_one_place_is_refused(shuffle: int) -> None:
    with pytest.raises(UsageError):
        order([3], shuffle)


def test_the_order_of_this_version_never_changes() -> None:
    """Guards the promise that a dataset, seed and epoch mean one order for as long as ORDER_VERSION stays."""
    for case in json.loads(GOLDEN.read_text()):
        weights = None if case["weights"] is None else np.arange(sum(case["counts"]), dtype=np.float64)
        some = SampleOrder("golden", case["seed"], case["epoch"], case["counts"], case["shuffle"], weights=weights)
        assert some.at(np.arange(1000)).tolist() == case["ids"], case["name"]
