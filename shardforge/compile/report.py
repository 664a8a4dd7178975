"""What a build came to, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from shardforge.compile.dicom.checks import Checks
from shardforge.compile.plan import Draft
from shardforge.compile.series_table import series_lines
from shardforge.dicom.slices import SeriesFinding
from shardforge.shards.manifest import Manifest
from shardforge.sources.item import UnknownFile
from shardforge.text import size

_CLASSES_TOLD = 12
_UNKNOWN_TOLD = 5


@dataclass(frozen=True)
class SplitReport:
    """A split: planned items and what became of them; ``bytes`` are of its tars."""

    items: int
    samples: int = 0
    failed: int = 0
    filtered: int = 0
    skipped: int = 0
    shards: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class BuildReport:
    """The result of :func:`shardforge.build`.

    Attributes:
        status: ``complete``, ``up to date`` (nothing to do) or ``planned`` (a dry run).
        items: planned items; the sum of the splits' samples, failed, filtered and skipped.
        reasons: reason → failed items.
        filtered_reasons: reason → filtered items.
        balance: class → split → items; those that a filter by size leaves out later still count.
        unknown: why a file became no item → number of such files.
        bytes: of all tars; an estimate in a dry run.
        resumed: items that an earlier, interrupted run had finished.
        seconds: what this run took.
        checks: what came of ``cross_check`` and ``repair``, where this run was asked for them.
    """

    status: Literal["complete", "up to date", "planned"]
    out: str
    layout: str
    items: int
    splits: dict[str, SplitReport]
    reasons: dict[str, int]
    balance: dict[str, dict[str, int]]
    unknown: dict[str, int]
    bytes: int
    resumed: int = 0
    seconds: float = 0.0
    filtered_reasons: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    checks: Checks | None = None

    @property
    def samples(self) -> int:
        return sum(split.samples for split in self.splits.values())

    @property
    def failed(self) -> int:
        return sum(split.failed for split in self.splits.values())

    @property
    def exit_code(self) -> int:
        """0: fine, also when there was nothing to do; 1: complete, but some items failed."""
        return 1 if self.status == "complete" and self.failed else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {**asdict(self), "samples": self.samples, "failed": self.failed, "exit_code": self.exit_code}

    def lines(self) -> list[str]:
        """The closing lines of a build."""
        if self.status == "planned":
            shards = sum(split.shards for split in self.splits.values())
            return [f"plan: {self.items:,} items -> {shards:,} shards, about {size(self.bytes)}; nothing was written"]
        told = [f"{self.out}: {self.status}"] if self.status == "up to date" else []
        parts = {
            "samples": self.samples,
            "failed": self.failed,
            "filtered": sum(split.filtered for split in self.splits.values()),
            "skipped": sum(split.skipped for split in self.splits.values()),
        }
        balance = " + ".join(f"{count:,} {name}" for name, count in parts.items())
        told.append(f"{self.items:,} items = {balance}; {size(self.bytes)} in {self.out}")
        if self.reasons:
            told.append("failed: " + ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items()))
        if self.filtered_reasons:
            told.append("filtered: " + told_counts(self.filtered_reasons))
        told += self.checks.lines() if self.checks else ()
        told += [f"warning: {line}" for line in empty_splits(self.splits)]
        if self.status == "complete" and self.seconds > 0:
            speed = (self.items - self.resumed) / self.seconds
            told.append(f"{self.seconds:.1f} s, {speed:,.0f} samples/s")
        return told


def empty_splits(splits: Mapping[str, SplitReport]) -> list[str]:
    """A warning for a dataset without samples, or else one for each split without any."""
    if not any(split.samples for split in splits.values()):
        return ["the dataset is EMPTY: no item became a sample"]
    return [
        f"the split {name!r} is EMPTY: none of its {split.items:,} items became a sample"
        for name, split in splits.items()
        if not split.samples
    ]


def describe_plan(
    draft: Draft, unknown: Sequence[UnknownFile], series: Sequence[tuple[str, SeriesFinding]] = ()
) -> list[str]:
    """What the plan has decided, before the work starts: inputs, labels, splits, class balance, odd files."""
    lines = [f"{draft.rows.num_rows:,} items from {draft.layout}", *draft.notes]
    if unknown:
        lines.append(f"{len(unknown):,} other files: {told_counts(count_unknown(unknown))}")
        lines += [f"  {file.path}: {file.why}" for file in unknown[:_UNKNOWN_TOLD]]
        if len(unknown) > _UNKNOWN_TOLD:
            lines.append(f"  … all of them in build.json ({len(unknown) - _UNKNOWN_TOLD:,} more)")
    shares = ", ".join(f"{name} {count:,}" for name, count in draft.splits.items())
    lines.append(f"splits: {shares}")
    if draft.balance and draft.recipe.filters.judges_geometry:
        lines.append("classes, before filters by size and shape leave anything out:")
    lines += _balance_lines(draft.balance, list(draft.splits))
    lines += series_lines(series)
    lines += [f"warning: {warning}" for warning in draft.warnings]
    return lines


def _balance_lines(balance: dict[str, dict[str, int]], splits: Sequence[str]) -> list[str]:
    if not balance:
        return []
    largest = sorted(balance, key=lambda name: -sum(balance[name].values()))[:_CLASSES_TOLD]
    shown = [name for name in balance if name in largest]
    wide = max(len("class"), *(len(name) for name in shown))
    lines = ["  ".join([f"{'class':<{wide}}", *(f"{split:>9}" for split in splits)])]
    for name in shown:
        cells = (f"{balance[name].get(split, 0):>{max(9, len(split))},}" for split in splits)
        lines.append("  ".join([f"{name:<{wide}}", *cells]))
    if len(balance) > len(shown):
        lines.append(f"… and {len(balance) - len(shown):,} smaller classes")
    return lines


def count_unknown(unknown: Sequence[UnknownFile]) -> dict[str, int]:
    """Why → number of files, most frequent first."""
    return dict(Counter(file.why for file in unknown).most_common())


def told_counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def split_reports(manifest: Manifest) -> dict[str, SplitReport]:
    """The splits of a complete dataset."""
    return {
        name: SplitReport(
            items=split.items,
            samples=split.samples,
            failed=split.failed,
            filtered=split.filtered,
            skipped=split.skipped,
            shards=len(split.shards),
            bytes=split.bytes,
        )
        for name, split in sorted(manifest.splits.items(), key=lambda entry: (entry[0] != "train", entry[0]))
    }
