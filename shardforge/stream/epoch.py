"""The number of the current epoch, shared with worker processes through anonymous memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from shardforge.errors import UsageError
from shardforge.stream.permute import key_of

_EPOCH_BITS, _VERSION_BITS, _ITERATION_BITS = 28, 15, 20
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

    The main process writes two words (the epoch, and how often it was set), a DataLoader's worker 0 writes one: the
    epoch that it ended, for which version, in which pass. Every word has one writer and is written at once, so that
    neither side can undo the other. The pass matters because workers do not begin together: one that begins after
    worker 0 has already ended the same pass must still read the same epoch.

    The memory is an unlinked file descriptor: nothing of it has a name, and nothing stays behind.
    """

    def __init__(self) -> None:
        self._words: torch.Tensor = shared(torch.tensor([0, 0, -1], dtype=torch.int64))

    def __getstate__(self) -> torch.Tensor:
        return self._words

    def __setstate__(self, words: torch.Tensor) -> None:
        # Sent to a child process the memory is still shared; a copy shares with its own workers only.
        self._words = shared(words)

    def set(self, epoch: int) -> None:
        """The next iteration reads ``epoch``."""
        if not 0 <= epoch <= MAX_EPOCH:
            raise UsageError(f"epoch {epoch} is not in 0 … {MAX_EPOCH}")
        self._words[_VALUE] = epoch
        self._words[_VERSION] += 1

    def begin(self, iteration: int | None = None) -> Ticket:
        """Begins an iteration and says which epoch it reads."""
        version, value, record = (int(self._words[word]) for word in (_VERSION, _VALUE, _RECORD))
        epoch = value
        if record >= 0:
            ended, of_version, of_iteration = _unpack(record)
            if of_version == version % (1 << _VERSION_BITS):
                epoch = ended if of_iteration == iteration else ended + 1
        return Ticket(epoch, version, iteration)

    def end(self, ticket: Ticket) -> None:
        """The epoch was read to its end. In a DataLoader only worker 0 calls this."""
        if ticket.iteration is not None:
            self._words[_RECORD] = _pack(ticket)
        elif ticket.version == int(self._words[_VERSION]):
            self.set(ticket.epoch + 1)


def shared(words: torch.Tensor) -> torch.Tensor:
    """The tensor in memory that child processes share, moved there unless it already is."""
    words.share_memory_()  # type: ignore[no-untyped-call]
    return words


def iteration_of(seed: int, number: int) -> int:
    """Names the ``number``-th pass of the DataLoader iterator whose base seed is ``seed``."""
    return int(key_of("iteration", seed, number)) % (1 << _ITERATION_BITS)


def _pack(ticket: Ticket) -> int:
    version = ticket.version % (1 << _VERSION_BITS)
    return ((ticket.epoch << _VERSION_BITS | version) << _ITERATION_BITS) | (ticket.iteration or 0)


def _unpack(record: int) -> tuple[int, int, int]:
    rest, iteration = divmod(record, 1 << _ITERATION_BITS)
    epoch, version = divmod(rest, (1 << _VERSION_BITS))
    return epoch, version, iteration
