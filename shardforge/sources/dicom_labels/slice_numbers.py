"""Whether a table counts slices from 1 while nobody said so: nine of ten slices would get their neighbour's label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from shardforge.errors import UsageError


@dataclass(slots=True)
class SliceNumbers:
    """The slice numbers of a table, by patient; only of patients that the source has.

    Attributes:
        counts: patient → the numbers of slices that its series have.
        least, most: patient → its lowest and highest number in the table.
    """

    counts: Mapping[str, frozenset[int]]
    least: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def see(self, patient: str, word: str) -> None:
        """Takes a row into account."""
        if patient in self.counts and word.isascii() and word.isdecimal():
            number = int(word)
            self.least[patient] = min(number, self.least.get(patient, number))
            self.most[patient] = max(number, self.most.get(patient, number))

    def check(self, where: str) -> None:
        """Refuses numbers that count from 1 without any doubt.

        Raises:
            UsageError: no row has slice 0, and the highest number of every patient is how many slices one of its
                series has, which counted from 0 would be a slice too many each time.
        """
        if self._from_one() and len(self._beyond()) == len(self.most):
            raise UsageError(
                "counts slices from 1: no row has slice 0, and each patient's highest number is its number of slices",
                where=where,
                todo="Say so with --first-slice 1. If they are counted from 0 all the same, give --first-slice 0.",
            )

    def notes(self) -> Iterator[str]:
        """A doubt that :meth:`check` lets pass."""
        beyond = self._beyond()
        if beyond and self._from_one():
            yield (
                f"no row has slice 0, and the highest number of {len(beyond):,} of {len(self.most):,} patients is "
                "their number of slices; if slices are counted from 1, give --first-slice 1"
            )

    def _from_one(self) -> bool:
        return bool(self.least) and min(self.least.values()) > 0

    def _beyond(self) -> list[str]:
        return [patient for patient, number in self.most.items() if number in self.counts[patient]]
