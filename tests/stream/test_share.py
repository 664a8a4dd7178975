"""Who gets which places."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.errors import UsageError
from shardforge.stream.share import Share


def all_rows(share: Share) -> np.ndarray:
    return share.rows(np.arange(share.steps))


def test_place_p_belongs_to_rank_p_mod_r() -> None:
    assert all_rows(Share(10, 2, 1, 2, "mask")).tolist() == [[1, 3], [5, 7], [9, -1]]


def test_global_batches_are_consecutive_places() -> None:
    for step in range(3):
        rows = np.concatenate([Share(36, 4, rank, 3, "drop").rows(np.array([step]))[0] for rank in range(3)])
        assert sorted(rows.tolist()) == list(range(12 * step, 12 * step + 12))


def test_missing_rows_spread_evenly_over_ranks() -> None:
    missing = [int((all_rows(Share(17, 4, rank, 4, "mask")) < 0).sum()) for rank in range(4)]
    assert sum(missing) == 2 * 16 - 17
    assert max(missing) - min(missing) <= 1


@pytest.mark.parametrize(("tail", "steps", "dropped"), [("mask", 3, 0), ("drop", 2, 4)])
def test_the_tail_is_masked_or_dropped(tail: str, steps: int, dropped: int) -> None:
    share = Share(20, 4, 0, 2, tail)  # type: ignore[arg-type]
    assert (share.steps, share.dropped) == (steps, dropped)


def test_a_worker_makes_every_nth_step() -> None:
    share = Share(100, 10, 0, 1, "drop")
    assert [list(share.steps_of(worker, 3)) for worker in range(3)] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_dropping_everything_is_refused_and_masking_is_offered() -> None:
    with pytest.raises(UsageError, match="fewer than one global batch") as error:
        Share(7, 4, 0, 2, "drop")
    assert "mask" in str(error.value)
    assert Share(7, 4, 0, 2, "mask").steps == 1


@pytest.mark.parametrize(
    "arguments",
    [(0, 1, 0, 1, "mask"), (5, 0, 0, 1, "mask"), (5, 1, 1, 1, "mask"), (5, 1, -1, 2, "mask"), (5, 1, 0, 1, "pad")],
)
def test_senseless_shares_are_refused(arguments: tuple) -> None:
    with pytest.raises(UsageError):
        Share(*arguments)
