"""``audit``: proves from a log of keys that training was given every sample exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shardforge.errors import DamagedError, UsageError
from shardforge.inspect.columns import aligned
from shardforge.inspect.key_log import read_log
from shardforge.shards import layout
from shardforge.shards.index import SplitIndex, schema
from shardforge.shards.manifest import Manifest
from shardforge.text import plain

EXAMPLES = 5
"""Keys that are named for every problem of an epoch."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Named:
    """So many keys, and the first of them."""

    count: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class EpochAudit:
    """One epoch.

    Attributes:
        rows: entries of the log.
        empty: entries without a key, as masked rows have it.
        given: different samples of the dataset.
        missing: samples of the dataset that no entry names.
        repeated: samples that several entries name; ``extra`` such entries beyond the first.
        foreign: keys that are none of the split's.
        steps: rank → number of different steps; empty without these columns.
        sound: nothing is wrong with this epoch.
    """

    epoch: int
    rows: int
    empty: int
    given: int
    missing: Named
    repeated: Named
    extra: int
    foreign: Named
    steps: dict[int, int]
    sound: bool


@dataclass(frozen=True)
class Audit:
    """What a log proves.

    Attributes:
        samples: of the split.
        dropped: samples that every epoch may, and must, leave out.
        notes: on the logs: those that are empty, and lines that were cut.
    """

    path: str
    split: str
    samples: int
    dropped: int
    epochs: tuple[EpochAudit, ...]
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether every epoch gave every sample exactly once."""
        return all(epoch.sound for epoch in self.epochs)

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {**asdict(self), "sound": self.sound}

    def lines(self) -> list[str]:
        """A line for every epoch, then what is wrong; keys are safe for a terminal."""
        head = ["epoch", "rows", "given", "missing", "repeated", "foreign", "steps"]
        table = [head]
        for epoch in self.epochs:
            counts = (epoch.rows, epoch.given, epoch.missing.count, epoch.repeated.count, epoch.foreign.count)
            table.append([str(epoch.epoch), *(f"{count:,}" for count in counts), _told_steps(epoch.steps)])
        problems = [line for epoch in self.epochs if not epoch.sound for line in _problems(epoch, self.dropped)]
        good = sum(epoch.sound for epoch in self.epochs)
        less = f", but for {self.dropped:,} that are dropped" if self.dropped else ""
        verdict = (
            f"{good:,} of {len(self.epochs):,} epochs gave each of the {self.samples:,} samples exactly once{less}"
        )
        notes = [f"note: {plain(note)}" for note in self.notes]
        return [*aligned(table), *problems, *notes, verdict if self.sound else f"NOT EXACTLY ONCE: {verdict}"]


def audit(root: Path, logs: Sequence[Path], *, split: str = "train", dropped: int = 0) -> Audit:
    """Holds a log of keys against a split.

    Args:
        root: the dataset's folder.
        logs: parquet, csv or jsonl files that belong together (one for each rank, say), with the columns ``epoch``
            and ``key``, and perhaps ``rank`` and ``step``. Rows without a key are those of masked samples.
        dropped: how many samples every epoch leaves out (``tail="drop"``: the loader's ``dropped``).

    Raises:
        UsageError: no such split, or a log that cannot be used.
        StorageError, DamagedError: dataset or log cannot be read.
    """
    manifest = Manifest.read(root)
    if split not in manifest.splits:
        raise UsageError(f"no split {split!r}", where=root, todo=f"There are: {', '.join(manifest.splits)}.")
    known = _keys(root, manifest, split)
    keys = read_log(logs)
    log = keys.rows
    number = np.asarray(pc.fill_null(pc.index_in(log["key"], known), -1).to_numpy(), np.int64)
    epochs = np.asarray(log["epoch"].to_numpy(), np.int64)
    found = tuple(
        _epoch(int(epoch), log.filter(pa.array(epochs == epoch)), number[epochs == epoch], known, dropped)
        for epoch in np.unique(epochs)
    )
    return Audit(str(root), split, len(known), dropped, found, keys.notes)


def _keys(root: Path, manifest: Manifest, split: str) -> pa.Array:
    path = layout.index_path(root, split)
    found = SplitIndex(path, schema(tuple(manifest.fields), manifest.label))
    if len(found) != manifest.splits[split].samples:
        raise DamagedError(f"lists {len(found):,} samples, the manifest more or fewer", where=path)
    return found.column("key").combine_chunks()


def _epoch(epoch: int, log: pa.Table, number: Ids, known: pa.Array, dropped: int) -> EpochAudit:
    keys = log["key"]
    empty = np.asarray(pc.equal(keys, "").to_numpy(zero_copy_only=False), bool)
    counts = np.bincount(number[number >= 0], minlength=len(known))
    missing = _named(known, np.flatnonzero(counts == 0))
    repeated = _named(known, np.flatnonzero(counts > 1))
    strange = pc.unique(keys.filter(pa.array((number < 0) & ~empty)))
    foreign = Named(len(strange), tuple(strange[:EXAMPLES].to_pylist()))
    steps = _steps(log)
    wrong = missing.count != dropped or repeated.count or foreign.count or len(set(steps.values())) > 1
    extra = int((counts[counts > 1] - 1).sum())
    given = int((counts > 0).sum())
    return EpochAudit(
        epoch, len(log), int(empty.sum()), given, missing, repeated, extra, foreign, steps, sound=not wrong
    )


def _named(known: pa.Array, which: Ids) -> Named:
    return Named(len(which), tuple(known.take(pa.array(which[:EXAMPLES])).to_pylist()))


def _steps(log: pa.Table) -> dict[int, int]:
    if not {"rank", "step"} <= set(log.column_names):
        return {}
    found = log.group_by("rank").aggregate([("step", "count_distinct")]).to_pylist()
    return {row["rank"]: row["step_count_distinct"] for row in sorted(found, key=lambda row: row["rank"])}


def _told_steps(steps: dict[int, int]) -> str:
    if not steps:
        return "-"
    if len(set(steps.values())) == 1:
        return f"{len(steps)} x {next(iter(steps.values())):,}"
    return "unequal"


def _problems(epoch: EpochAudit, dropped: int) -> list[str]:
    lines = []
    if epoch.missing.count != dropped:
        belongs = f" where {dropped:,} are dropped" if dropped else ""
        lines.append(f"  {epoch.missing.count:,} samples missing{belongs}{_examples(epoch.missing)}")
    if epoch.repeated.count:
        lines.append(
            f"  {epoch.repeated.count:,} samples given {epoch.extra:,} times too often{_examples(epoch.repeated)}"
        )
    if epoch.foreign.count:
        lines.append(f"  {epoch.foreign.count:,} keys that are none of this split{_examples(epoch.foreign)}")
    if len(set(epoch.steps.values())) > 1:
        told = ", ".join(f"rank {rank} {count:,}" for rank, count in epoch.steps.items())
        lines.append(f"  unequal steps: {told}")
    return [f"epoch {epoch.epoch}:", *lines]


def _examples(named: Named) -> str:
    rest = named.count - len(named.examples)
    more = f", and {rest:,} more" if rest else ""
    return f": {', '.join(map(plain, named.examples))}{more}" if named.count else ""
