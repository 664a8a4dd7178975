"""Which rank this process is, of how many."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
from torch.utils.data import get_worker_info

from shardforge.errors import UsageError
from shardforge.stream.counts import whole


@dataclass(frozen=True)
class Ranks:
    """Finds rank and world size when asked, never earlier: a dataset may well be made before the process group.

    In order: what was given; in a DataLoader's worker that did not inherit its parent's memory, what the parent found
    when it sent the dataset; torch.distributed; torchrun's environment; a world of one.

    Attributes:
        given: (rank, world size), or None to find them.
        sent: what the process that pickled this found, and the process that it is good for.
    """

    given: tuple[int, int] | None
    sent: tuple[tuple[int, int], int] | None = None

    @classmethod
    def of(cls, rank: int | None, world_size: int | None) -> Ranks:
        """Raises UsageError unless both or neither are given, and make sense."""
        if rank is None and world_size is None:
            return cls(None)
        if rank is None or world_size is None:
            raise UsageError("rank and world_size are given together, or neither")
        rank, world_size = whole("rank", rank), whole("world_size", world_size)
        if not 0 <= rank < world_size:
            raise UsageError(f"rank={rank} of world_size={world_size}: ranks are 0 … world_size - 1")
        return cls((rank, world_size))

    def find(self) -> tuple[int, int]:
        """(rank, world size) of this process or of the one that this DataLoader worker works for."""
        if self.given is not None:
            return self.given
        if self.sent is not None and self.sent[1] == os.getpid() and get_worker_info() is not None:
            return self.sent[0]
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return _from_environment() or (0, 1)

    def __getstate__(self) -> dict[str, tuple[int, int] | None]:
        return {"given": self.given, "found": self.find()}

    def __setstate__(self, state: dict[str, tuple[int, int] | None]) -> None:
        object.__setattr__(self, "given", state["given"])
        # A process that is forked later from this one is another rank's worker only if this one is.
        object.__setattr__(self, "sent", (state["found"], os.getpid()))


def _from_environment() -> tuple[int, int] | None:
    texts = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if texts == (None, None):
        return None
    if None in texts:
        set_one, missing = ("WORLD_SIZE", "RANK") if texts[0] is None else ("RANK", "WORLD_SIZE")
        raise UsageError(
            f"{set_one} is set in the environment, and {missing} is not",
            todo=f"Set {missing} too, unset {set_one}, or give rank= and world_size=.",
        )
    try:
        rank, world = (int(text) for text in texts if text is not None)
    except ValueError:
        raise UsageError(
            f"RANK={texts[0]!r} and WORLD_SIZE={texts[1]!r} in the environment are no integers"
        ) from None
    return rank, world
