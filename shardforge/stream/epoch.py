"""The number of the current epoch, known to a training process and its workers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from shardforge.errors import UsageError
from shardforge.stream.permute import key_of
from shardforge.stream.shared import SharedWords

_EPOCH_BITS, _VERSION_BITS, _ITERATION_BITS = 28, 15, 19
MAX_EPOCH = (1 << _EPOCH_BITS) - 1
_VALUE, _VERSION, _RECORD = 0, 1, 2


@dataclass(frozen=True)
class Ticket:
    """One iteration over the dataset in one process.

    Attributes:
        epoch: which is read.
        version: how often the epoch had been set when it began.
        iteration: names the DataLoader's pass over all workers, or None outside a worker.
    """

    epoch: int
    version: int
    iteration: int | None


class EpochClock:
    """Moves on by itself when an epoch was read to its end; :meth:`set` overrides.

    The training process writes two words (the epoch, and how often it was set), a DataLoader's worker 0 writes one:
    the epoch that it ended, for which version, in which pass. Every word has one writer and is written at once, so
    that neither side can undo the other. The pass matters because workers do not begin together: one that begins
    after worker 0 has already ended the same pass must still read the same epoch.
    """

    def __init__(self) -> None:
        self._shared = SharedWords(3)
        self.set(0)

    def __getstate__(self) -> tuple[SharedWords, int]:
        return self._shared, self.begin().epoch

    def __setstate__(self, state: tuple[SharedWords, int]) -> None:
        self._shared, epoch = state
        _set(self._shared.unpickled_row(), epoch)

    def set(self, epoch: int) -> None:
        """The next iteration reads ``epoch``."""
        if not 0 <= epoch <= MAX_EPOCH:
            raise UsageError(f"epoch {epoch} is not in 0 … {MAX_EPOCH}")
        _set(self._shared.row(), epoch)

    def begin(self, iteration: int | None = None) -> Ticket:
        """Begins an iteration and says which epoch it reads."""
        row = self._shared.row()
        version = int(row[_VERSION])
        return Ticket(_epoch(row if version else self._shared.makers_row(), row, iteration), version, iteration)

    def end(self, ticket: Ticket) -> None:
        """The epoch was read to its end. In a DataLoader only worker 0 calls this."""
        row = self._shared.row()
        if ticket.iteration is not None:
            row[_RECORD] = _pack(ticket)
        elif ticket.version == int(row[_VERSION]):
            self.set(min(ticket.epoch + 1, MAX_EPOCH))


def iteration_of(seed: int, number: int) -> int:
    """Names the ``number``-th pass of the DataLoader iterator whose base seed is ``seed``."""
    return int(key_of("iteration", seed, number)) % (1 << _ITERATION_BITS)


def _set(row: torch.Tensor, epoch: int) -> None:
    row[_VALUE] = epoch
    row[_VERSION] += 1


def _epoch(values: torch.Tensor, row: torch.Tensor, iteration: int | None) -> int:
    """``values``: where the epoch was last set, the row itself or, as long as it was not set there, its maker's."""
    record = int(row[_RECORD])
    if record:
        ended, version, of_iteration = _unpack(record)
        if version == int(row[_VERSION]) % (1 << _VERSION_BITS):
            return ended if of_iteration == iteration else ended + 1
    return int(values[_VALUE]) if values is row else _epoch(values, values, None)


def _pack(ticket: Ticket) -> int:
    version = ticket.version % (1 << _VERSION_BITS)
    return (((ticket.epoch << _VERSION_BITS | version) << _ITERATION_BITS) | (ticket.iteration or 0)) + 1


def _unpack(record: int) -> tuple[int, int, int]:
    rest, iteration = divmod(record - 1, 1 << _ITERATION_BITS)
    epoch, version = divmod(rest, 1 << _VERSION_BITS)
    return epoch, version, iteration
