"""Who gets which places: a pure function of N, batch size, rank, world size and the place where reading begins.

From place s on, global batch t is the places [s + t·B·R, s + (t+1)·B·R) and place p belongs to rank (p - s) mod R, so
that every rank takes equally many steps and the missing rows of the last batch spread evenly. A whole epoch begins at
s = 0; a resumed one where the last ended, whatever the numbers of ranks and rows were then. A rank's step b is made
by its worker b mod W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError

Tail = Literal["mask", "drop"]


@dataclass(frozen=True)
class Share:
    """One rank's share of an epoch. Samples given singly are batches of one.

    Attributes:
        places: N, in the whole epoch.
        batch: rows per rank and step.
        rank, world: this rank of how many.
        tail: what happens to the last places, fewer than a global batch: ``mask`` (a step with missing rows) or
            ``drop``.
        start: the first place that has not been handed over yet.

    Raises:
        UsageError: nothing of a whole epoch would be left, or the numbers make no sense.
    """

    places: int
    batch: int
    rank: int
    world: int
    tail: Tail
    start: int = 0

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"batch_size={self.batch}: at least 1 is needed")
        if self.world < 1 or not 0 <= self.rank < self.world:
            raise UsageError(f"rank {self.rank} of a world of {self.world}: ranks are 0 … world_size - 1")
        if self.tail not in ("mask", "drop"):
            raise UsageError(f"tail={self.tail!r}", todo="Choose 'mask' or 'drop'.")
        if self.places < 1:
            raise UsageError("there are no samples to read")
        if not 0 <= self.start <= self.places:
            raise UsageError(f"place {self.start} of an epoch that has {self.places}")
        # What is left of an epoch may be too little for a step; that of a whole one is a mistake.
        if self.steps == 0 and self.start == 0:
            raise UsageError(
                f"{self.places} samples are fewer than one global batch ({self.world} ranks × {self.batch}), "
                "and tail='drop' would leave out all of them",
                todo="Use tail='mask' or a smaller batch_size.",
            )

    @property
    def steps(self) -> int:
        """Steps from ``start`` to the end of the epoch, the same on every rank."""
        whole, rest = divmod(self.places - self.start, self.batch * self.world)
        return whole + (1 if rest and self.tail == "mask" else 0)

    @property
    def dropped(self) -> int:
        """Samples that no rank gets."""
        return self.places - self.position(self.steps)

    def position(self, steps: int) -> int:
        """How many places of the epoch are handed over after so many steps of every rank."""
        return min(self.places, self.start + steps * self.batch * self.world)

    def rows(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The places of this rank in some steps, int64 [len(steps), batch]; −1 where a row is missing."""
        rows = np.arange(self.batch, dtype=np.int64)
        places = self.start + (steps[:, None] * self.batch + rows) * self.world + self.rank
        return np.where(places < self.places, places, -1)

    def steps_of(self, worker: int, workers: int) -> range:
        """The steps that one of this rank's workers makes."""
        return range(worker, self.steps, workers)
