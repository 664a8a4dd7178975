"""What is wrong with a dataset on disk: collected in full, printed within bounds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

LINES = 20
"""Damages of one file that are told one by one; the rest is counted."""


@dataclass(frozen=True)
class Damage:
    """One thing that is not as it should be.

    Attributes:
        file: name of the file inside the dataset's folder.
        sample: key of the sample concerned, or None where the whole file is.
        what: what is wrong. May quote bytes found on disk; escape it before it reaches a terminal.
    """

    file: str
    sample: str | None
    what: str

    def __str__(self) -> str:
        place = self.file if self.sample is None else f"{self.file}, sample {self.sample}"
        return f"{place}: {self.what}"


class Findings:
    """Collects damage, :data:`LINES` entries for each file and an exact count of the others."""

    def __init__(self) -> None:
        self._told: dict[str, list[Damage]] = defaultdict(list)
        self._untold: dict[str, int] = defaultdict(int)

    def add(self, file: str, what: str, sample: str | None = None) -> None:
        """Notes a damage; the first of a file are kept in the order in which they come."""
        if len(self._told[file]) < LINES:
            self._told[file].append(Damage(file, sample, what))
        else:
            self._untold[file] += 1

    def count(self, file: str) -> int:
        """How many damages of this file were noted."""
        return len(self._told.get(file, ())) + self._untold.get(file, 0)

    def total(self) -> int:
        """How many damages were noted."""
        return sum(len(told) for told in self._told.values()) + sum(self._untold.values())

    def sorted(self) -> tuple[Damage, ...]:
        """Everything, by file name; inside a file by place, with the count of what was left out at the end."""
        damage: list[Damage] = []
        for file in sorted(self._told):
            damage += self._told[file]
            if self._untold.get(file):
                damage.append(Damage(file, None, f"and {self._untold[file]:,} more like these"))
        return tuple(damage)
