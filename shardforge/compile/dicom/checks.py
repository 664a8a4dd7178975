"""What came of decoding twice and of repairing values, counted once all shards are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shardforge.recipe import Recipe
from shardforge.shards import metadata
from shardforge.shards.catalogue import Flag, Reason
from shardforge.shards.layout import parquet_path

NO_SECOND_DECODER = "none"
"""In the column ``dicom_second_decoder``: to be compared, but nothing else decodes such an image."""
_COLUMNS = ("reason", "flags", "dicom_second_decoder")


@dataclass(frozen=True)
class Checks:
    """Counts of items.

    Attributes:
        asked: items to be decoded twice, as the recipe says.
        agreed: second decoder → samples that it gives the same pixels of.
        disagreed: items that failed because it gives others.
        alone: samples that nothing else decodes.
        repaired: samples whose values were unwrapped; None where the recipe does not ask for it.
    """

    asked: int
    agreed: Mapping[str, int]
    disagreed: int
    alone: int
    repaired: int | None

    def record(self) -> dict[str, Any]:
        """Plain values for ``build.json``."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """For people."""
        if self.asked:
            compared = sum(self.agreed.values()) + self.disagreed
            by = "".join(f"; {count:,} by {name}" for name, count in self.agreed.items())
            told = f"cross-check: {compared:,} decoded twice, {self.disagreed:,} differ{by}"
            yield told + (f"; no second decoder for {self.alone:,}" if self.alone else "")
        if self.repaired is not None:
            yield f"repair: values unwrapped in {self.repaired:,} of the samples"


def count_checks(out: Path, shards: Iterable[str], recipe: Recipe) -> Checks | None:
    """Reads what the rows say; None where the recipe asks for neither.

    Args:
        shards: names of all shards.

    Raises:
        DamagedError: a parquet file cannot be read.
    """
    options = recipe.dicom
    if recipe.kind != "dicom" or not (options.cross_check or options.repair != "none"):
        return None
    seconds: Counter[str] = Counter()
    disagreed = repaired = 0
    for name in shards:
        rows = metadata.read(parquet_path(out, name), _COLUMNS)
        seconds.update(rows["dicom_second_decoder"].drop_null().to_pylist())
        disagreed += rows["reason"].to_pylist().count(Reason.DECODERS_DISAGREE)
        repaired += sum(Flag.REPAIRED in (flags or ()) for flags in rows["flags"].to_pylist())
    alone = seconds.pop(NO_SECOND_DECODER, 0)
    told = None if options.repair == "none" else repaired
    return Checks(options.cross_check, dict(seconds.most_common()), disagreed, alone, told)
