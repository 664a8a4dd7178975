"""Who gets which places: a pure function of N, batch size, rank and world size.

Global batch t is the places [t·B·R, (t+1)·B·R) and place p belongs to rank p mod R, so that every rank takes equally
many steps and the missing rows of the last batch spread evenly. A rank's step b is made by its worker b mod W.
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

    Raises:
        UsageError: nothing would be left, or the numbers make no sense.
    """

    places: int
    batch: int
    rank: int
    world: int
    tail: Tail

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"batch_size={self.batch}: at least 1 is needed")
        if self.world < 1 or not 0 <= self.rank < self.world:
            raise UsageError(f"rank {self.rank} of a world of {self.world}: ranks are 0 … world_size - 1")
        if self.tail not in ("mask", "drop"):
            raise UsageError(f"tail={self.tail!r}", todo="Choose 'mask' or 'drop'.")
        if self.places < 1:
            raise UsageError("there are no samples to read")
        if self.steps == 0:
            raise UsageError(
                f"{self.places} samples are fewer than one global batch ({self.world} ranks × {self.batch}), "
                "and tail='drop' would leave out all of them",
                todo="Use tail='mask' or a smaller batch_size.",
            )

    @property
    def steps(self) -> int:
        """Steps per epoch, the same on every rank."""
        whole, rest = divmod(self.places, self.batch * self.world)
        return whole + (1 if rest and self.tail == "mask" else 0)

    @property
    def dropped(self) -> int:
        """Samples that no rank gets."""
        return max(0, self.places - self.steps * self.batch * self.world)

    def rows(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The places of this rank in some steps, int64 [len(steps), batch]; −1 where a row is missing."""
        rows = np.arange(self.batch, dtype=np.int64)
        places = (steps[:, None] * self.batch + rows) * self.world + self.rank
        return np.where(places < self.places, places, -1)

    def steps_of(self, worker: int, workers: int) -> range:
        """The steps that one of this rank's workers makes."""
        return range(worker, self.steps, workers)
