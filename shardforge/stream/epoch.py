"""The current epoch, and where in it reading begins, known to a training process and its workers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from shardforge.errors import UsageError
from shardforge.stream.counts import whole
from shardforge.stream.permute import key_of
from shardforge.stream.shared import SharedWords

_EPOCH_BITS, _VERSION_BITS, _ITERATION_BITS = 28, 15, 19
MAX_EPOCH = (1 << _EPOCH_BITS) - 1
_VALUE, _VERSION, _START, _ENDED, _BEGUN = range(5)
_WORDS = 5


@dataclass(frozen=True)
class Ticket:
    """One iteration over the dataset in one process.

    Attributes:
        epoch: which is read.
        start: from which place of it on.
        version: how often the epoch had been set when it began.
        iteration: names the DataLoader's pass over all workers, or None outside a worker.
    """

    epoch: int
    start: int
    version: int
    iteration: int | None


class EpochClock:
    """Moves on by itself when an epoch was read to its end or, where workers say so (:meth:`note_begun`), begun by
    them: when they have made their last step depends on how far they read ahead. :meth:`set` overrides.

    The training process writes three words (the epoch, the place in it, and how often they were set), a DataLoader's
    worker 0 writes two: the epoch that it began and the one that it ended, for which version, in which pass. Every
    word has one writer and is written at once, so that neither side can undo the other. The pass matters because
    workers do not begin together: one that begins after worker 0 has already ended the same pass must still read the
    same epoch. Only the epoch that was set begins in the middle; those that follow begin at their first place.
    """

    def __init__(self) -> None:
        self._shared = SharedWords(_WORDS)
        self.set(0)

    def __getstate__(self) -> tuple[SharedWords, int, int]:
        ticket = self.begin()
        return self._shared, ticket.epoch, ticket.start

    def __setstate__(self, state: tuple[SharedWords, int, int]) -> None:
        self._shared, epoch, start = state
        _set(self._shared.unpickled_row(), epoch, start)

    def set(self, epoch: int, start: int = 0) -> None:
        """The next iteration reads ``epoch`` from place ``start`` on."""
        epoch = whole("epoch", epoch)
        if not 0 <= epoch <= MAX_EPOCH:
            raise UsageError(f"epoch {epoch} is not in 0 … {MAX_EPOCH}")
        _set(self._shared.row(), epoch, start)

    def begin(self, iteration: int | None = None) -> Ticket:
        """Says what an iteration reads that begins now."""
        row = self._shared.row()
        version = int(row[_VERSION])
        epoch, start = _next(row if version else self._shared.makers_row(), row, iteration)
        return Ticket(epoch, start, version, iteration)

    def start_of(self, epoch: int) -> int:
        """The place at which ``epoch`` begins: not the first only if that was the last thing set."""
        row = self._shared.row()
        values = row if int(row[_VERSION]) else self._shared.makers_row()
        return int(values[_START]) if epoch == int(values[_VALUE]) else 0

    def note_begun(self, ticket: Ticket) -> None:
        """A DataLoader's worker 0 begins this iteration."""
        self._shared.row()[_BEGUN] = _pack(ticket)

    def begun_by_workers(self) -> tuple[Ticket, bool] | None:
        """The last iteration that workers began since the epoch was set, and whether worker 0 has made its last
        step; None if there was none."""
        row = self._shared.row()
        begun = _of_version(row, _BEGUN)
        if begun is None:
            return None
        ticket = Ticket(begun[0], self.start_of(begun[0]), int(row[_VERSION]), begun[1])
        return ticket, _of_version(row, _ENDED) == begun

    def end(self, ticket: Ticket) -> None:
        """The epoch was read to its end. In a DataLoader only worker 0 calls this."""
        row = self._shared.row()
        if ticket.iteration is not None:
            row[_ENDED] = _pack(ticket)
        elif ticket.version == int(row[_VERSION]):
            self.set(min(ticket.epoch + 1, MAX_EPOCH))


def iteration_of(seed: int, number: int) -> int:
    """Names the ``number``-th pass of the DataLoader iterator whose base seed is ``seed``."""
    return int(key_of("iteration", seed, number)) % (1 << _ITERATION_BITS)


def _set(row: torch.Tensor, epoch: int, start: int) -> None:
    row[_VALUE] = epoch
    row[_START] = start
    row[_VERSION] += 1


def _next(values: torch.Tensor, row: torch.Tensor, iteration: int | None) -> tuple[int, int]:
    """Epoch and first place. ``values``: where they were last set, the row itself or, as long as they were not set
    there, its maker's."""
    record = _of_version(row, _BEGUN) or _of_version(row, _ENDED)
    if record is not None:
        last, of_iteration = record
        epoch = last if of_iteration == iteration else last + 1
    elif values is row:
        epoch = int(values[_VALUE])
    else:
        return _next(values, values, None)
    return epoch, int(values[_START]) if epoch == int(values[_VALUE]) else 0


def _of_version(row: torch.Tensor, word: int) -> tuple[int, int] | None:
    """Epoch and iteration that stand in a worker's word, unless the epoch was set since."""
    if not int(row[word]):
        return None
    epoch, version, iteration = _unpack(int(row[word]))
    return (epoch, iteration) if version == int(row[_VERSION]) % (1 << _VERSION_BITS) else None


def _pack(ticket: Ticket) -> int:
    version = ticket.version % (1 << _VERSION_BITS)
    return (((ticket.epoch << _VERSION_BITS | version) << _ITERATION_BITS) | (ticket.iteration or 0)) + 1


def _unpack(record: int) -> tuple[int, int, int]:
    rest, iteration = divmod(record - 1, 1 << _ITERATION_BITS)
    epoch, version = divmod(rest, 1 << _VERSION_BITS)
    return epoch, version, iteration
