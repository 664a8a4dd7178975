"""What was found of the series of a DICOM source, for people and for ``build.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from shardforge.dicom.slices import SeriesFinding

_TOLD = 12
Series = Sequence[tuple[str, SeriesFinding]]


def series_lines(series: Series) -> list[str]:
    """A table of the groups of slices that have something remarkable; the largest first, equal ones of one series in
    one line."""
    odd = sorted((entry for entry in series if entry[1].words), key=lambda entry: -entry[1].n_slices)
    if not odd:
        return []
    told: dict[str, int] = {}
    head = f"{'series':<32}  {'slices':>6}  {'spacing':>9}  {'tilt':>6}  findings"
    for name, found in odd:
        spacing = "-" if found.spacing_mm is None else f"{found.spacing_mm:.3f} mm"
        tilt = f"{found.tilt_deg:.1f}°" if found.tilted else "-"
        line = f"{name[:32]:<32}  {found.n_slices:>6,}  {spacing:>9}  {tilt:>6}  {', '.join(found.words)}"
        told[line] = told.get(line, 0) + 1
    lines = [line if count == 1 else f"{line} (× {count:,})" for line, count in told.items()]
    more = [f"… and {len(lines) - _TOLD:,} more in build.json"] if len(lines) > _TOLD else []
    return [head, *lines[:_TOLD], *more]


def series_records(series: Series) -> list[dict[str, Any]]:
    """All series as plain values, under the names that rows have for them."""
    return [{**asdict(found), "series": name, "words": list(found.words)} for name, found in series]
