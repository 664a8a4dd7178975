"""How far training has got in a dataset: a few integers and texts, the same on every rank.

A position counts places of the epoch's order, over all ranks. So it means the same on any number of ranks and workers
and with any batch size, and what follows it is computed, not replayed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError
from shardforge.stream.counts import whole
from shardforge.stream.order import ORDER_VERSION

STATE_VERSION = 1
_PLACE = ("epoch", "position")
_WHAT = {
    "state_version": "it was written by another version of shardforge",
    "order_version": "it was written by a version of shardforge that orders samples differently",
    "fingerprint": "it belongs to another dataset",
}


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What an order depends on but for the epoch. States of different identities mean different orders.

    Attributes:
        state_version, order_version: of the state's layout and of the algorithm.
        fingerprint: of the dataset.
        split, seed: which.
        shuffle: −1 for a global shuffle, 0 for none, else the window.
        where, weights: digests of the chosen samples and of the weights; empty without.
    """

    state_version: int = STATE_VERSION
    order_version: int = ORDER_VERSION
    fingerprint: str
    split: str
    seed: int
    shuffle: int
    where: str
    weights: str

    def state(self, epoch: int, position: int) -> dict[str, int | str]:
        """The state in which ``position`` places of ``epoch`` are handed over."""
        return {**asdict(self), "epoch": epoch, "position": position}

    def position_of(self, state: Mapping[str, Any], places: int) -> tuple[int, int]:
        """Epoch and position of a state.

        Args:
            places: in an epoch.

        Raises:
            UsageError: it is no such state, or one of another identity; names the field.
        """
        if not isinstance(state, Mapping):
            raise UsageError(
                f"this state cannot be loaded: it is of type {type(state).__name__}",
                todo="Give what state_dict() returned.",
            )
        for field in fields(self):
            expected, found = getattr(self, field.name), state.get(field.name)
            if found != expected:
                what = _WHAT.get(field.name, f"its {field.name} is {found!r}, and here it is {expected!r}")
                raise UsageError(
                    f"this state cannot be loaded: {what} ({field.name})",
                    todo="Open the dataset as it was when the state was saved, or start without the state.",
                )
        for name in _PLACE:
            if name not in state:
                raise UsageError(
                    f"this state cannot be loaded: it has no {name}", todo="Give what state_dict() returned."
                )
        epoch, position = (whole(f"this state cannot be loaded: {name}", state[name]) for name in _PLACE)
        if position >= places:
            raise UsageError(f"this state cannot be loaded: epoch {epoch!r}, position {position!r} of {places}")
        return epoch, position


def digest(values: npt.NDArray[Any] | None) -> str:
    """Sixteen hexadecimal digits of an array; empty without one."""
    return "" if values is None else hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=8).hexdigest()
