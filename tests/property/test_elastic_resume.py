"""Resuming as mathematics: however ranks, rows and interruptions change, every sample once and in one order."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.stream.order import SampleOrder
from shardforge.stream.share import Share

counts = st.lists(st.integers(0, 200), min_size=1, max_size=5).filter(sum)
shuffles = st.one_of(st.booleans(), st.integers(1, 500))
topologies = st.tuples(st.integers(1, 5), st.integers(1, 30), st.integers(1, 4))
stays = st.lists(st.tuples(topologies, st.integers(0, 6)), min_size=1, max_size=6)


def given_places(share_of_rank: list[Share], steps: range, workers: int) -> list[int]:
    """Places that all ranks give in some steps, in the order of global batches, made by so many workers each."""
    out = []
    for step in steps:
        batch = []
        for share in share_of_rank:
            assert step in share.steps_of(step % workers, workers)
            batch += share.rows(np.array([step]))[0].tolist()
        out += sorted(place for place in batch if place >= 0)
    return out


@given(counts, shuffles, st.integers(0, 2**40), stays, topologies)
@settings(deadline=None, max_examples=200)
def test_interrupted_epochs_give_what_an_uninterrupted_one_gives(
    counts: list[int], shuffle: bool | int, seed: int, interrupted: list, last: tuple[int, int, int]
) -> None:
    total = sum(counts)
    order = SampleOrder("f", seed, 3, counts, shuffle)
    position, found = 0, []
    for (world, batch, workers), steps in [*interrupted, (last, None)]:
        shares = [Share(total, batch, rank, world, "mask", position) for rank in range(world)]
        assert len({share.steps for share in shares}) == 1
        done = shares[0].steps if steps is None else min(steps, shares[0].steps)
        found += given_places(shares, range(done), workers)
        assert {share.position(done) for share in shares} == {len(found)}
        position = len(found)
    assert order.at(np.array(found)).tolist() == order.at(np.arange(total)).tolist()


@given(st.integers(1, 500), st.integers(0, 500), topologies)
@settings(deadline=None, max_examples=200)
def test_what_is_left_is_dropped_only_if_it_is_less_than_a_global_batch(
    total: int, position: int, topology: tuple[int, int, int]
) -> None:
    world, batch, _ = topology
    position = min(position, total)
    if position == 0 and total < world * batch:
        return
    shares = [Share(total, batch, rank, world, "drop", position) for rank in range(world)]
    rows = [row for share in shares for row in share.rows(np.arange(share.steps)).ravel().tolist()]
    assert sorted(rows) == list(range(position, position + len(rows)))
    assert {share.dropped for share in shares} == {total - position - len(rows)}
    assert total - position - len(rows) < world * batch


@given(st.integers(1, 500), st.integers(0, 499), st.integers(1, 6), st.integers(1, 9))
@settings(deadline=None, max_examples=100)
def test_missing_rows_of_a_resumed_epoch_spread_evenly(total: int, position: int, world: int, batch: int) -> None:
    shares = [Share(total, batch, rank, world, "mask", min(position, total)) for rank in range(world)]
    missing = [int((share.rows(np.arange(share.steps)) < 0).sum()) for share in shares]
    assert max(missing) - min(missing) <= 1
