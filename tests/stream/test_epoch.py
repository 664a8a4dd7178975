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
    ticket = clock.begin(2**20 - 1)
    clock.end(ticket)
    assert clock.begin(2**20 - 1) == ticket


def _end_an_epoch(clock: EpochClock, told: multiprocessing.SimpleQueue) -> None:
    told.put(clock.begin(ONE).epoch)
    clock.end(clock.begin(ONE))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_child_processes_share_it(method: str) -> None:
    clock, context = EpochClock(), torch.multiprocessing.get_context(method)
    clock.set(41)
    told = context.SimpleQueue()
    child = context.Process(target=_end_an_epoch, args=(clock, told))
    child.start()
    child.join()
    assert told.get() == 41
    assert clock.begin(TWO).epoch == 42


def test_a_pickled_copy_keeps_the_number_and_is_shared_with_its_own_children() -> None:
    clock = EpochClock()
    clock.set(6)
    copy = pickle.loads(pickle.dumps(clock))  # noqa: S301
    clock.set(1)
    assert copy.begin().epoch == 6
    context, told = torch.multiprocessing.get_context("fork"), torch.multiprocessing.get_context("fork").SimpleQueue()
    child = context.Process(target=_end_an_epoch, args=(copy, told))
    child.start()
    child.join()
    assert copy.begin(TWO).epoch == 7
