"""Samples that a bench came upon and that cannot be read: which they are, and what is wrong with the first few."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shardforge.errors import DamagedError, StorageError
from shardforge.inspect.bench.workload import Workload
from shardforge.shards.manifest import Manifest
from shardforge.stream.fields import VALID
from shardforge.stream.planning import EpochPlan
from shardforge.stream.reader import choose_split

NAMED = 5
"""How many are named."""


@dataclass(frozen=True)
class UnreadableSample:
    """A sample, and why it cannot be read."""

    key: str
    what: str


@dataclass(frozen=True)
class Unreadable:
    """What could not be read.

    Attributes:
        samples: how many different ones, of those that were read at all.
        first: the first :data:`NAMED` of them, in the order of the split.
    """

    samples: int
    first: tuple[UnreadableSample, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {"samples": self.samples, "first": [asdict(sample) for sample in self.first]}


def unreadable_in(plan: EpochPlan, step: int, batch: dict[str, Any]) -> list[int]:
    """Numbers in the split of the samples of this batch, the one of ``step``, that could not be read."""
    bad = ~batch[VALID].numpy()
    return plan.samples(step, 0)[bad].tolist() if bad.any() else []


def describe(workload: Workload, numbers: Collection[int]) -> Unreadable:
    """Reads the first of these samples again, to tell what is wrong with them."""
    manifest = Manifest.read(workload.root)
    split, info = choose_split(workload.root, manifest, workload.split), manifest.fields[workload.field]
    first = []
    for number in sorted(numbers)[:NAMED]:
        extent = split.index.extents(workload.field, np.array([number]))
        try:
            place = int(extent.shard[0]), int(extent.offset[0]), int(extent.size[0])
            split.value(number, workload.field, info, *place)
            what = "could be read when it was tried again"
        except (DamagedError, StorageError) as error:
            what = error.what
        first.append(UnreadableSample(split.key(number), what))
    return Unreadable(len(numbers), tuple(first))
