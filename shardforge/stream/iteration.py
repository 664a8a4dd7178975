"""One pass of one process over its share of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardforge.errors import UsageError
from shardforge.stream.counts import whole
from shardforge.stream.epoch import Ticket

if TYPE_CHECKING:
    from shardforge.stream.dataset import ShardDataset


Contents = Callable[[Ticket, Sequence[int]], Iterator[Any]]
"""What some steps of a pass give."""


class EpochIterator(Iterator[Any]):
    """Gives what one process (a DataLoader's worker, or the training process itself) reads of an epoch.

    Its state is for torchdata's ``StatefulDataLoader``, which keeps one per worker: how many of its own steps this
    worker has given. So it can be loaded with the same numbers of workers, ranks and rows only.

    Attributes:
        ticket: which epoch, and from where.
        given: how many steps were given.
    """

    def __init__(self, dataset: ShardDataset, contents: Contents, ticket: Ticket, worker: int, workers: int) -> None:
        self._dataset, self._contents, self._worker, self._workers = dataset, contents, worker, workers
        self._begin(ticket, 0)

    def _begin(self, ticket: Ticket, given: int) -> None:
        self.ticket, self.given = ticket, given
        self._steps: Sequence[int] = self._dataset.share(ticket.start).steps_of(self._worker, self._workers)
        self._content = self._contents(ticket, self._steps[given:])
        self._ended = False

    def __iter__(self) -> EpochIterator:
        return self

    def __next__(self) -> Any:
        try:
            content = next(self._content)
        except StopIteration:
            if self._worker == 0 and not self._ended:
                self._dataset.clock.end(self.ticket)
            self._ended = True
            raise
        self.given += 1
        return content

    def _topology(self) -> dict[str, int | None]:
        share = self._dataset.share(0)
        batch = self._dataset.batch_size
        return {"worker": self._worker, "workers": self._workers, "world_size": share.world, "batch_size": batch}

    def state_dict(self) -> dict[str, Any]:
        """Where this process stands; ``position`` is where the pass began."""
        state = self._dataset.identity.state(self.ticket.epoch, self.ticket.start)
        return {**state, **self._topology(), "given": self.given}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on after the steps that were given.

        Raises:
            UsageError: the state belongs to another dataset or order, or to another number of workers, ranks or rows.
        """
        epoch, start = self._dataset.identity.position_of(state, self._dataset.samples)
        for name, here in self._topology().items():
            if state.get(name) != here:
                raise UsageError(
                    f"this state cannot be loaded: its {name} is {state.get(name)!r}, and here it is {here!r}",
                    todo="A DataLoader's state fits the same numbers only; that of ShardLoader or"
                    " ShardDataset.state_dict(consumed=…) fits any.",
                )
        ticket = Ticket(epoch, start, self.ticket.version, self.ticket.iteration)
        self._begin(ticket, whole("this state cannot be loaded: given", state.get("given", -1)))
        if self._worker or ticket.iteration is None:
            return
        # So that the passes that follow read the epochs that follow.
        self._dataset.clock.note_begun(ticket)
        if self.given >= len(self._steps):
            self._dataset.clock.end(ticket)
