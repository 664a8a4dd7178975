"""Which pass a training loop is in that reads a dataset through a DataLoader of its own."""

from __future__ import annotations

from shardforge.errors import UsageError
from shardforge.stream.epoch import EpochClock, Ticket
from shardforge.stream.iteration import EpochIterator


def current_pass(
    clock: EpochClock, running: EpochIterator | None, consumed: int | None, epoch: int | None
) -> tuple[Ticket, int]:
    """The pass that training is in, and how many of its steps this process gave.

    Args:
        clock: of the dataset.
        running: the last pass that this process itself began.
        consumed: how many steps the training loop says it has got, or None.
        epoch: which epoch it says it is in, or None.

    Raises:
        UsageError: it cannot be told; says what to give.
    """
    upcoming, begun = clock.begin(), clock.begun_by_workers()
    if running is not None:
        current = running.ticket.version == upcoming.version if epoch is None else running.ticket.epoch == epoch
        if current:
            return running.ticket, running.given
    if begun is not None and consumed is None:
        raise UsageError(
            "workers read ahead of the training loop",
            todo="Say how much it has got: state_dict(consumed=…), batches or samples of this rank in the epoch.",
        )
    if epoch is not None:
        return Ticket(epoch, clock.start_of(epoch), upcoming.version, None), 0
    if begun is None:
        return upcoming, 0
    ticket, ended = begun
    if consumed == 0 and ended:
        raise UsageError(
            f"the workers have read epoch {ticket.epoch} to its end; is it consumed, or not begun?",
            todo="Say which epoch is meant: state_dict(consumed=0, epoch=…).",
        )
    return ticket, 0
