"""Counts what the parquet rows of a dataset say, one shard after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from shardforge.shards.catalogue import Status

COLUMNS = (
    "status",
    "reason",
    "source",
    "label_name",
    "width",
    "height",
    "original_width",
    "original_height",
    "original_format",
    "flags",
)
"""The columns that :meth:`Tally.add` needs."""

EXAMPLES = 3
"""Sources that are named for every reason."""
_COMMON = 5


@dataclass(frozen=True)
class Range:
    """Smallest, median (of an even number, the lower one) and largest value, in pixels."""

    low: int
    median: int
    high: int


@dataclass(frozen=True)
class Sizes:
    """How large images are.

    Attributes:
        common: (width, height, images) of the most frequent sizes.
        distinct: how many different sizes there are.
    """

    width: Range
    height: Range
    common: tuple[tuple[int, int, int], ...]
    distinct: int


@dataclass(frozen=True)
class Problem:
    """Items that are no samples, for one reason.

    Attributes:
        status: ``failed``, ``filtered`` or ``skipped``.
        reason: of the catalogue, or None where a filtered or skipped item needs none.
        examples: the first sources, in the order of the dataset.
    """

    status: str
    reason: str | None
    count: int
    examples: tuple[str, ...]


@dataclass
class Tally:
    """Counts over the shards added so far.

    Attributes:
        sizes, original_sizes: (width, height) → samples.
        formats: format of the source → samples.
        flags: flag → samples.
    """

    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    original_sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    _classes: Counter[tuple[str, str]] = field(default_factory=Counter)
    _reasons: Counter[tuple[str, str | None]] = field(default_factory=Counter)
    _examples: dict[tuple[str, str | None], list[str]] = field(default_factory=dict)

    def add(self, split: str, rows: pa.Table) -> None:
        """Counts one shard's rows, which have :data:`COLUMNS`.

        Raises:
            ValueError: a status that the format does not know.
        """
        good = pc.equal(rows["status"], Status.SUCCESS.value)
        kept = rows.filter(good)
        for name, count in _counts(_flat(kept["label_name"])).items():
            self._classes[name, split] += count
        self.sizes.update(_pairs(kept, "width", "height"))
        self.original_sizes.update(_pairs(kept, "original_width", "original_height"))
        self.formats.update(_counts(kept["original_format"]))
        self.flags.update(_counts(_flat(kept["flags"])))
        strange = set(_counts(rows["status"])) - {status.value for status in Status}
        if strange or rows["status"].null_count:
            raise ValueError(f"unknown status {strange or None}")
        lost = rows.filter(pc.invert(good)).select(["status", "reason", "source"])
        for status, reason, source in zip(*(column.to_pylist() for column in lost.columns), strict=True):
            self._reasons[status, reason] += 1
            examples = self._examples.setdefault((status, reason), [])
            if len(examples) < EXAMPLES:
                examples.append(str(source))

    def class_count(self, name: str, split: str) -> int:
        """Samples of a class in a split."""
        return self._classes[name, split]

    def problems(self) -> tuple[Problem, ...]:
        """Why items are no samples: failures first, each kind by falling count."""
        order = [status.value for status in Status]
        found = [
            Problem(status, reason, count, tuple(self._examples[status, reason]))
            for (status, reason), count in self._reasons.items()
        ]
        return tuple(sorted(found, key=lambda p: (order.index(p.status), -p.count, p.reason or "")))


def describe_sizes(counts: Mapping[tuple[int, int], int]) -> Sizes | None:
    """Range and most frequent values of (width, height) → images; None without images."""
    if not counts:
        return None
    widths: Counter[int] = Counter()
    heights: Counter[int] = Counter()
    for (width, height), count in counts.items():
        widths[width] += count
        heights[height] += count
    common = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:_COMMON]
    return Sizes(
        _range(widths), _range(heights), tuple((w, h, count) for (w, h), count in common), distinct=len(counts)
    )


def _range(counts: Counter[int]) -> Range:
    middle, passed, median = (counts.total() + 1) // 2, 0, 0
    for median in sorted(counts):
        passed += counts[median]
        if passed >= middle:
            break
    return Range(min(counts), median, max(counts))


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.list_flatten(column) if pa.types.is_list(column.type) else column


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    found = pc.value_counts(column.combine_chunks()).to_pylist()
    return {entry["values"]: entry["counts"] for entry in found if entry["values"] is not None}


def _pairs(rows: pa.Table, width: str, height: str) -> dict[tuple[int, int], int]:
    found = rows.group_by([width, height]).aggregate([([], "count_all")]).to_pylist()
    return {
        (entry[width], entry[height]): entry["count_all"]
        for entry in found
        if entry[width] is not None and entry[height] is not None
    }
