"""The epoch's number: two writers, many readers, no race."""

from __future__ import annotations

import multiprocessing
import pickle

import pytest
import torch.multiprocessing

from shardforge.errors import UsageError
from shardforge.stream.epoch import MAX_EPOCH, EpochClock, iteration_of

ONE, TWO, THREE = (iteration_of(123, number) for number in (1, 2, 3))


def test_reading_to_the_end_moves_on_in_the_process_itself() -> None:
    clock = EpochClock()
    for epoch in range(3):
        ticket = clock.begin()
        assert ticket.epoch == epoch
        clock.end(ticket)


def test_an_epoch_left_early_is_read_again() -> None:
    clock = EpochClock()
    clock.begin()
    assert clock.begin().epoch == 0


def test_a_worker_that_begins_late_reads_the_epoch_of_its_pass() -> None:
    clock = EpochClock()
    for epoch, iteration in enumerate((ONE, TWO, THREE)):
        first = clock.begin(iteration)
        clock.end(first)
        late = clock.begin(iteration)
        assert first.epoch == late.epoch == epoch
    assert clock.begin().epoch == 3


def test_setting_the_epoch_overrides_what_workers_ended() -> None:
    clock = EpochClock()
    clock.end(clock.begin(ONE))
    clock.set(7)
    assert clock.begin(TWO).epoch == 7


def test_a_worker_that_ends_after_the_epoch_was_set_does_not_undo_it() -> None:
    clock = EpochClock()
    ticket = clock.begin(ONE)
    clock.set(7)
    clock.end(ticket)
    assert clock.begin(TWO).epoch == 7
    alone = clock.begin()
    clock.set(3)
    clock.end(alone)
    assert clock.begin().epoch == 3


def test_after_an_epoch_was_set_the_next_ones_follow() -> None:
    clock = EpochClock()
    clock.set(5)
    clock.end(clock.begin(ONE))
    clock.end(clock.begin(TWO))
    assert clock.begin(THREE).epoch == 7


@pytest.mark.parametrize("epoch", [-1, MAX_EPOCH + 1])
def test_impossible_epochs_are_refused(epoch: int) -> None:
    with pytest.raises(UsageError):
        EpochClock().set(epoch)


def test_the_largest_numbers_keep_their_place() -> None:
    clock = EpochClock()
    clock.set(MAX_EPOCH)
    ticket = clock.begin(2**19 - 1)
    clock.end(ticket)
    assert clock.begin(2**19 - 1) == ticket


def _read_epochs(clock: EpochClock, count: int, told: multiprocessing.SimpleQueue) -> None:
    for _ in range(count):
        ticket = clock.begin()
        clock.end(ticket)
    told.put(clock.begin().epoch)


def epoch_after(clock: EpochClock, count: int, method: str) -> int:
    """What another process has as its epoch after it was given the clock and read ``count`` epochs."""
    context = torch.multiprocessing.get_context(method)
    told = context.SimpleQueue()
    child = context.Process(target=_read_epochs, args=(clock, count, told))
    child.start()
    child.join()
    return told.get()  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_training_processes_that_got_one_clock_do_not_share_it(method: str) -> None:
    clock = EpochClock()
    clock.set(41)
    assert [epoch_after(clock, count, method) for count in (2, 1, 0)] == [43, 42, 41]
    assert clock.begin().epoch == 41
    clock.set(5)
    assert epoch_after(clock, 1, method) == 6


def test_a_pickled_copy_has_the_epoch_of_its_sender_and_goes_its_own_way() -> None:
    clock = EpochClock()
    clock.set(6)
    copy = pickle.loads(pickle.dumps(clock))  # noqa: S301
    clock.set(1)
    assert copy.begin().epoch == 6
    copy.end(copy.begin())
    assert (copy.begin().epoch, clock.begin().epoch) == (7, 1)
