"""What a verification came to, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from shardforge.shards.damage import Damage
from shardforge.text import plain, size

_NAMED = 3


@dataclass(frozen=True)
class Verification:
    """What a verification found.

    Attributes:
        damage: everything that is wrong, by file; empty for a sound dataset.
        notes: what is no damage but worth knowing: files that do not belong to the dataset, tars from elsewhere that
            were damaged before they were indexed.
        splits, shards: as many as the manifest names.
        samples: that were found in tars; of tars from elsewhere, but for those whose rows say that they failed.
        items: rows that were found in parquet files.
        bytes: that were read.
    """

    damage: tuple[Damage, ...]
    notes: tuple[str, ...]
    splits: int
    shards: int
    samples: int
    items: int
    bytes: int

    @property
    def sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damage

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``."""
        return {
            **asdict(self),
            "sound": self.sound,
            "damage": [asdict(damage) for damage in self.damage],
            "notes": list(self.notes),
        }

    def lines(self) -> list[str]:
        """The verdict first, then every damage and note; whatever was found on disk is safe for a terminal."""
        read = (
            f"{self.splits:,} splits, {self.shards:,} shards, {self.samples:,} samples of {self.items:,} items, "
            f"{size(self.bytes)} read"
        )
        files = len({damage.file for damage in self.damage})
        verdict = "sound" if self.sound else f"DAMAGED in {files:,} file{'s' * (files != 1)}"
        damage = [f"  {plain(str(damage))}" for damage in self.damage]
        return [f"{verdict}: {read}", *damage, *(f"note: {plain(note)}" for note in self.notes)]


def damaged_when_indexed(tars: Sequence[str]) -> tuple[str, ...]:
    """The note about tars that are as they were when they were indexed: damaged. None if there are no such tars."""
    if not tars:
        return ()
    named = ", ".join(tars[:_NAMED]) + ", …" * (len(tars) > _NAMED)
    many = "1 tar was" if len(tars) == 1 else f"{len(tars):,} tars were"
    return (f"{many} damaged already when indexed ({named}): what could be read is listed",)
