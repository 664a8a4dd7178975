"""What indexing came to, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from shardforge.indexing.shape import Shape
from shardforge.indexing.survey import Survey
from shardforge.indexing.tars import FoundTar
from shardforge.shards import layout, metadata
from shardforge.shards.manifest import Manifest
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


def report_of(
    status: Literal["indexed", "up to date"],
    out: Path,
    manifest: Manifest,
    surveys: Sequence[Survey],
    notes: Sequence[str],
    shape: Shape | None,
    tars: Sequence[FoundTar] = (),
) -> IndexReport:
    """The report on a dataset that has been written.

    Args:
        surveys, shape, tars: what was seen on the way, in the same order; empty and None if nothing was read.
    """
    reasons: Counter[str] = Counter()
    for split in manifest.splits.values():
        for shard in split.shards if split.failed else ():
            reasons.update(
                metadata.read(layout.parquet_path(out, shard.name), ["reason"])["reason"].drop_null().to_pylist()
            )
    kind, classes = manifest.label.kind, len(manifest.classes)
    return IndexReport(
        status=status,
        out=str(out),
        splits={
            name: SplitIndexed(info.samples, info.failed, len(info.shards), info.bytes)
            for name, info in manifest.splits.items()
        },
        fields={name: info.kind + "?" * info.optional for name, info in manifest.fields.items()},
        labels=f"{kind}, {classes:,} classes" if classes else kind,
        reasons=dict(reasons.most_common()),
        damage={f"{tar.name}.tar": seen.damage[0] for tar, seen in zip(tars, surveys, strict=False) if seen.damage},
        skipped=dict(sum((Counter(seen.skipped) for seen in surveys), Counter[str]()).most_common()),
        left_out={} if shape is None else shape.left_out,
        notes=tuple(notes),
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())
