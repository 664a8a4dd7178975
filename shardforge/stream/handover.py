"""What a loader has handed over, and what it reads next."""

from __future__ import annotations

from shardforge.stream.share import Share


class Pass:
    """One pass over the rest of an epoch, and how many steps of it were handed over."""

    def __init__(self, epoch: int, share: Share) -> None:
        self.epoch, self.share, self.given = epoch, share, 0

    @property
    def complete(self) -> bool:
        return self.given >= self.share.steps


class HandOver:
    """Follows the passes of one loader.

    Attributes:
        epoch, start: what the next pass reads, and from which place on.
    """

    def __init__(self, epoch: int = 0, start: int = 0) -> None:
        self.epoch, self.start = epoch, start
        self._set = False
        self._last: Pass | None = None

    def set(self, epoch: int, start: int) -> None:
        """The next pass reads this, whatever becomes of the one that runs."""
        self.epoch, self.start, self._set, self._last = epoch, start, True, None

    def begin(self, share: Share) -> Pass:
        """A pass begins over this share of what was next."""
        self._set = False
        self._last = Pass(self.epoch, share)
        self._move_on(self._last)
        return self._last

    def hand_over(self, running: Pass) -> None:
        """The next step of a pass goes to the trainer."""
        running.given += 1
        self._last = running
        self._move_on(running)

    def _move_on(self, running: Pass) -> None:
        if running.complete and not self._set:
            self.epoch, self.start = running.epoch + 1, 0

    @property
    def unfinished(self) -> Pass | None:
        """The last pass, if it has steps left."""
        return None if self._last is None or self._last.complete else self._last

    @property
    def position(self) -> tuple[int, int]:
        """The epoch that the trainer is in, and how many of its places were handed over."""
        running = self.unfinished
        return (self.epoch, self.start) if running is None else (running.epoch, running.share.position(running.given))
