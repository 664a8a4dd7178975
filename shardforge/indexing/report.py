"""What indexing came to, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from shardforge.text import plain, size

_TOLD = 10


@dataclass(frozen=True)
class SplitIndexed:
    """A split: samples that can be read and that cannot; ``bytes`` are of its tars."""

    samples: int
    failed: int
    shards: int
    bytes: int


@dataclass(frozen=True)
class IndexReport:
    """The result of :func:`shardforge.index`.

    Attributes:
        status: ``indexed``, or ``up to date`` (nothing to do).
        out: where the manifest is.
        fields: field → kind; a kind ends in ``?`` where samples may lack the field.
        labels: kind of label, with the number of classes where there are any.
        reasons: reason → samples that cannot be read.
        damage: tar → where and how it ends to make sense.
        skipped: kind of entry that is no member of a sample → how many.
        left_out: field that readers cannot give → samples that have it.
    """

    status: Literal["indexed", "up to date"]
    out: str
    splits: dict[str, SplitIndexed]
    fields: dict[str, str]
    labels: str
    reasons: dict[str, int]
    damage: dict[str, str]
    skipped: dict[str, int]
    left_out: dict[str, int]
    notes: tuple[str, ...]

    @property
    def samples(self) -> int:
        return sum(split.samples for split in self.splits.values())

    @property
    def failed(self) -> int:
        return sum(split.failed for split in self.splits.values())

    @property
    def exit_code(self) -> int:
        """0: fine, also when there was nothing to do; 1: indexed, but some samples failed or tars are damaged."""
        return 1 if self.status == "indexed" and (self.failed or self.damage) else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            **asdict(self),
            "notes": list(self.notes),
            "samples": self.samples,
            "failed": self.failed,
            "exit_code": self.exit_code,
        }

    def lines(self) -> list[str]:
        """Text for people; whatever came from the tars is safe for a terminal."""
        told = [f"{plain(self.out)}: {self.status}"]
        for name, split in self.splits.items():
            failed = f", {split.failed:,} failed" if split.failed else ""
            told.append(f"  {name}: {split.samples:,} samples{failed} in {split.shards:,} tars, {size(split.bytes)}")
        told.append(f"  fields: {', '.join(f'{name} ({kind})' for name, kind in self.fields.items())}")
        told.append(f"  labels: {self.labels}")
        if self.reasons:
            told.append(f"failed: {_counts(self.reasons)}")
        damaged = list(self.damage.items())
        told += [f"DAMAGED: {plain(tar)}, {plain(what)}" for tar, what in damaged[:_TOLD]]
        if len(damaged) > _TOLD:
            told.append(f"DAMAGED: and {len(damaged) - _TOLD:,} more tars")
        if self.left_out:
            told.append(f"note: members of other kinds are left out: {_counts(self.left_out)}")
        if self.skipped:
            told.append(f"note: skipped: {_counts(self.skipped)}")
        return [*told, *(f"note: {plain(note)}" for note in self.notes)]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())
