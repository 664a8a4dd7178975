"""Order and share together, as mathematics: whatever the numbers, every sample once and equal steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.stream.order import SampleOrder
from shardforge.stream.share import Share

counts = st.lists(st.integers(0, 300), min_size=1, max_size=6).filter(sum)
shuffles = st.one_of(st.booleans(), st.integers(1, 2000))
seeds = st.integers(0, 2**63 - 1)
epochs = st.integers(0, 2**28 - 1)


def epoch_of(order: SampleOrder, batch: int, world: int, tail: str) -> list[list[list[int]]]:
    """Rank → step → sample ids, −1 for missing rows."""
    out = []
    for rank in range(world):
        share = Share(len(order), batch, rank, world, tail)  # type: ignore[arg-type]
        steps = []
        for step in range(share.steps):
            places = share.rows(np.array([step]))[0]
            ids = np.full(len(places), -1)
            ids[places >= 0] = order.at(places[places >= 0])
            steps.append(ids.tolist())
        out.append(steps)
    return out


@given(counts, shuffles, seeds, epochs)
@settings(deadline=None, max_examples=150)
def test_an_order_is_a_permutation(counts: list[int], shuffle: bool | int, seed: int, epoch: int) -> None:
    order = SampleOrder("f", seed, epoch, counts, shuffle)
    assert np.array_equal(np.sort(order.at(np.arange(len(order)))), np.arange(sum(counts)))


@given(counts, shuffles, seeds, st.integers(1, 4), st.integers(1, 40), st.sampled_from(["mask", "drop"]))
@settings(deadline=None, max_examples=150)
def test_no_sample_is_given_twice_and_ranks_take_equal_steps(
    counts: list[int], shuffle: bool | int, seed: int, world: int, batch: int, tail: str
) -> None:
    total = sum(counts)
    if tail == "drop" and total < world * batch:
        return
    ranks = epoch_of(SampleOrder("f", seed, 0, counts, shuffle), batch, world, tail)
    assert len({len(steps) for steps in ranks}) == 1
    given = sorted(i for steps in ranks for step in steps for i in step if i >= 0)
    assert len(given) == len(set(given))
    whole, rest = divmod(total, world * batch)
    if tail == "mask":
        assert given == list(range(total))
        assert len(ranks[0]) == whole + (rest > 0)
    else:
        assert len(given) == total - rest
        assert len(ranks[0]) == whole
        assert all(i >= 0 for steps in ranks for step in steps for i in step)


@given(counts, shuffles, seeds, st.integers(1, 12))
@settings(deadline=None, max_examples=100)
def test_global_batches_do_not_depend_on_the_world_size(
    counts: list[int], shuffle: bool | int, seed: int, per_rank: int
) -> None:
    order, rows = SampleOrder("f", seed, 0, counts, shuffle), 12 * per_rank
    batches = []
    for world in (1, 2, 3, 4, 6, 12):
        ranks = epoch_of(order, rows // world, world, "mask")
        batches.append([sorted(i for steps in ranks for i in steps[t] if i >= 0) for t in range(len(ranks[0]))])
    assert all(other == batches[0] for other in batches)


@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 8), st.integers(1, 5))
@settings(deadline=None)
def test_workers_divide_the_steps_of_a_rank(places: int, batch: int, world: int, workers: int) -> None:
    share = Share(places, batch, 0, world, "mask")
    steps = [step for worker in range(workers) for step in share.steps_of(worker, workers)]
    assert sorted(steps) == list(range(share.steps))


@pytest.mark.long
@given(st.integers(1, 200_000), seeds, epochs)
@settings(deadline=None, max_examples=60)
def test_large_orders_are_permutations(total: int, seed: int, epoch: int) -> None:
    order = SampleOrder("f", seed, epoch, [total], True)
    assert (np.bincount(order.at(np.arange(total)), minlength=total) == 1).all()


@given(counts, seeds, st.data())
@settings(deadline=None, max_examples=60)
def test_weighted_draws_only_give_what_has_weight(counts: list[int], seed: int, data: st.DataObject) -> None:
    total = sum(counts)
    weights = np.array(data.draw(st.lists(st.sampled_from([0.0, 1e-300, 0.5, 1e12]), min_size=total, max_size=total)))
    if not weights.any():
        return
    order = SampleOrder("f", seed, 0, counts, True, weights=weights)
    drawn = order.at(np.arange(total))
    assert (weights[drawn] > 0).all()
    assert np.array_equal(drawn, order.at(np.arange(total)))
