"""What people should know about a join. Notes may be published, so they hold no identifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardforge.sources.dicom_labels.keys import KeyColumns
from shardforge.sources.dicom_labels.matching import Found
from shardforge.sources.dicom_labels.options import JoinOptions, Uncertain
from shardforge.sources.dicom_labels.pile import Pile
from shardforge.sources.dicom_labels.row import Layout

_UNCERTAIN_TOLD: Mapping[Uncertain, str] = {
    "ignore": "given no label, and named in the column label_uncertain",
    "keep": "kept as -1; blanks are 0",
    "positive": "taken as 1",
    "negative": "taken as 0",
}


@dataclass(slots=True)
class JoinTally:
    """Rows that are about no item, and the number of the first of them.

    Attributes:
        unknown: name nothing in the source.
        several: fit several things.
    """

    unknown: int = 0
    first_unknown: int = 0
    several: int = 0
    first_several: int = 0

    def see(self, number: int, found: Found) -> None:
        """Takes a row into account."""
        if found.several:
            self.first_several = self.first_several or number
            self.several += 1
        elif not found.items:
            self.first_unknown = self.first_unknown or number
            self.unknown += 1


def notes_of(
    layout: Layout,
    options: JoinOptions,
    key: KeyColumns,
    piles: Mapping[int, Pile],
    items: int,
    tally: JoinTally,
    left_out: Sequence[str],
) -> Iterator[str]:
    """What was recognised, what fits nothing, and what was left out.

    Args:
        piles: item → what its rows say.
        items: how many items there are.
        left_out: columns that are not taken over because they identify somebody.
    """
    table, meanings = layout.table, layout.meanings
    name, columns = Path(table.where).name, table.columns
    labels = ", ".join(repr(columns[place]) for place in meanings.labels)
    found = [("labels", labels or None)]
    found += [
        (what, None if place is None else repr(columns[place]))
        for what, place in (("groups", meanings.group), ("splits", meanings.split), ("captions", meanings.caption))
    ]
    told = [f"{what} from {where}" for what, where in found if where is not None]
    if layout.boxes is not None:
        told.append(f"boxes from {', '.join(repr(columns[place]) for place in layout.boxes.places)}")
    yield f"{name}: {', '.join([key.told(columns), *told])}"
    if tally.unknown:
        yield f"{name}: {_rows(tally.unknown)} no item ({table.unit} {tally.first_unknown}, for one)"
    if tally.several:
        yield (
            f"{name}: {_rows(tally.several)} several files or slices at once and were left out "
            f"({table.unit} {tally.first_several}, for one)"
        )
    if len(piles) < items:
        yield f"{name}: {items - len(piles):,} of {items:,} items have no row"
    differing = sorted({column for pile in piles.values() for column in pile.differing})
    if differing:
        yield f"{name}: empty where the rows of an item differ: {', '.join(differing)}"
    captions = sum(len(pile.captions) > 1 for pile in piles.values())
    if captions:
        yield f"{name}: {captions:,} items have rows with several captions; the first was taken"
    uncertain = sum(bool(pile.uncertain) for pile in piles.values())
    if uncertain:
        yield f"{name}: uncertain findings (-1) of {uncertain:,} items are {_UNCERTAIN_TOLD[options.uncertain]}"
    if left_out:
        yield f"{name}: not taken over, as they identify patients or files: {', '.join(left_out)}"
    if meanings.mask is not None:
        yield f"{name}: the column {columns[meanings.mask]!r} is not used; masks come from segmentation objects"


def _rows(count: int) -> str:
    return "1 row names" if count == 1 else f"{count:,} rows name"
