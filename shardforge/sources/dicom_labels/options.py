"""How a table of labels belongs to DICOM items."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shardforge.sources.options import SourceOptions

Key = Literal["sop", "series", "study", "patient", "slice", "path"]
Uncertain = Literal["ignore", "keep", "positive", "negative"]


@dataclass(frozen=True)
class JoinOptions:
    """How a table of labels belongs to DICOM items.

    Attributes:
        columns: columns of labels, groups, splits, captions and keys, and the label separator, as for other tables.
        key: what a row names; None recognises it by the names of the columns.
        key_columns: the column that holds it (for ``slice`` that of patients and that of slice numbers); none
            recognises them.
        first_slice: what the table calls the first slice of a series. None: 0, but refused where the numbers tell
            that it is 1.
        multi: an item may have several classes, so rows that differ add up instead of contradicting each other.
        uncertain: what -1 means in label columns of 1, 0, -1 and blanks (CheXpert). ``ignore``: not positive, and
            named in the column ``label_uncertain``, so that a loss can leave it out; ``positive`` and ``negative``: 1
            and 0; ``keep``: the number -1, the label being a vector of numbers (of which none can be missing, so that
            a blank is 0).
        keep_identifiers: columns of identifiers are columns of the dataset, too.
    """

    columns: SourceOptions = field(default_factory=SourceOptions)
    key: Key | None = None
    key_columns: tuple[str, ...] = ()
    first_slice: int | None = None
    multi: bool = False
    uncertain: Uncertain = "ignore"
    keep_identifiers: bool = False
