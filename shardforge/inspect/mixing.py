"""``inspect --mixing``: how well classes are mixed inside batches, by labels and order alone; no pixel is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError
from shardforge.inspect.columns import aligned
from shardforge.shards import layout
from shardforge.shards.index import SplitIndex, schema
from shardforge.shards.manifest import Manifest
from shardforge.stream.order import SampleOrder
from shardforge.text import plain

WINDOWS = (1024, 16_384)
BUFFER = 1000
"""Samples in the shuffle buffer of the classical reader, for comparison."""

Ids = npt.NDArray[np.int64]
_AT_ONCE = 1 << 20
_COMPARED = 10_000_000
"""Up to so many samples the comparison takes seconds."""


@dataclass(frozen=True)
class OrderMixing:
    """Distinct classes per batch in one order: their mean, and the fewest in any batch."""

    order: str
    mean: float
    fewest: int


@dataclass(frozen=True)
class SplitMixing:
    """One split.

    Attributes:
        batches: whole batches of an epoch.
        classes: that occur.
        ideal: expected distinct classes in a batch drawn at random without replacement.
    """

    split: str
    samples: int
    batches: int
    classes: int
    ideal: float
    orders: tuple[OrderMixing, ...]


@dataclass(frozen=True)
class Mixing:
    """How well the splits of a dataset are mixed."""

    path: str
    batch_size: int
    splits: tuple[SplitMixing, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return asdict(self)

    def lines(self) -> list[str]:
        """A table for each split."""
        lines = []
        for split in self.splits:
            lines.append(
                f"{plain(split.split)}: {split.samples:,} samples, {split.classes:,} classes, "
                f"{split.batches:,} batches of {self.batch_size:,}"
            )
            rows = [["  order", "distinct classes per batch", "of ideal", "fewest"]]
            rows += [
                [f"  {order.order}", f"{order.mean:.1f}", f"{order.mean / split.ideal:.0%}", f"{order.fewest:,}"]
                for order in split.orders
            ]
            rows.append(["  ideal (drawn at random)", f"{split.ideal:.1f}", "100%", ""])
            lines += aligned(rows)
        return lines


def measure_mixing(root: Path, batch_size: int = 256) -> Mixing:
    """Counts the distinct classes in every whole batch of epoch 0, seed 0, in several orders.

    Raises:
        UsageError: labels are not single classes, or no split has a whole batch.
        StorageError, DamagedError: the dataset cannot be read.
    """
    if batch_size < 1:
        raise UsageError(f"batch size {batch_size}: at least 1 is needed")
    manifest = Manifest.read(root)
    if manifest.label.kind != "class":
        raise UsageError("mixing is measured by classes, and labels here are none", where=root)
    names = [name for name, info in manifest.splits.items() if info.samples >= batch_size]
    if not names:
        raise UsageError(f"no split has {batch_size:,} samples, which one batch takes", where=root)
    return Mixing(str(root), batch_size, tuple(_split(root, manifest, name, batch_size) for name in names))


def _split(root: Path, manifest: Manifest, name: str, batch: int) -> SplitMixing:
    index = SplitIndex(layout.index_path(root, name), schema(tuple(manifest.fields), manifest.label))
    _, labels = np.unique(np.asarray(index.column("label"), np.int64), return_inverse=True)
    counts = [shard.samples for shard in manifest.splits[name].shards]
    batches = len(labels) // batch

    def order(shuffle: bool | int) -> Callable[[Ids], Ids]:
        return SampleOrder(manifest.fingerprint, 0, 0, counts, shuffle).at

    orders: dict[str, Callable[[Ids], Ids]] = {"as stored (shuffle=False)": order(False)}
    if len(labels) <= _COMPARED:
        orders[f"shuffle buffer of {BUFFER:,}, for comparison"] = _buffered(len(labels), BUFFER).__getitem__
    orders |= {f"windows of {size:,} (shuffle={size})": order(size) for size in WINDOWS if size < len(labels)}
    orders["whole split (shuffle=True)"] = order(True)
    sizes = np.bincount(labels)
    return SplitMixing(
        name,
        len(labels),
        batches,
        len(sizes),
        ideal_classes(sizes.tolist(), batch),
        tuple(_measured(title, at, labels, batch, batches) for title, at in orders.items()),
    )


def _measured(title: str, at: Callable[[Ids], Ids], labels: Ids, batch: int, batches: int) -> OrderMixing:
    distinct = []
    step = max(1, _AT_ONCE // batch)
    for first in range(0, batches, step):
        last = min(batches, first + step)
        rows = np.sort(labels[at(np.arange(first * batch, last * batch))].reshape(last - first, batch), axis=1)
        distinct.append(1 + (np.diff(rows, axis=1) != 0).sum(axis=1))
    found = np.concatenate(distinct)
    return OrderMixing(title, float(found.mean()), int(found.min()))


def _buffered(count: int, size: int) -> Ids:
    """The order that a shuffle buffer makes of 0 … count-1: each sample pushes out a random one that waits."""
    generator = np.random.default_rng(0)
    waiting = list(range(min(size, count)))
    out = []
    for sample, place in enumerate(
        generator.integers(len(waiting) or 1, size=count - len(waiting)).tolist(), len(waiting)
    ):
        out.append(waiting[place])
        waiting[place] = sample
    return np.array([*out, *generator.permutation(waiting).tolist()], np.int64)


def ideal_classes(sizes: list[int], batch: int) -> float:
    """Expected number of distinct classes among ``batch`` samples drawn at random without replacement from classes of
    these sizes: the sum of 1 − C(N − n, B) / C(N, B) (the hypergeometric chance of none is the quotient)."""
    total = sum(sizes)
    return sum(1 - math.exp(_log_binomial(total - n, batch) - _log_binomial(total, batch)) for n in sizes)


def _log_binomial(n: int, k: int) -> float:
    return -math.inf if k > n else math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
