"""What was found of the series of a DICOM source, for people and for ``build.json``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from shardforge.dicom.slices import SeriesFinding

_TOLD = 12
Series = Sequence[tuple[str, SeriesFinding]]


def series_lines(series: Series) -> list[str]:
    """A table of the series that have something remarkable; the largest first."""
    odd = sorted((entry for entry in series if entry[1].words), key=lambda entry: -entry[1].n_slices)
    if not odd:
        return []
    lines = [f"{'series':<32}  {'slices':>6}  {'spacing':>9}  {'tilt':>6}  findings"]
    for name, found in odd[:_TOLD]:
        spacing = "-" if found.spacing_mm is None else f"{found.spacing_mm:.3f} mm"
        tilt = f"{found.tilt_deg:.1f}°" if found.tilted else "-"
        lines.append(f"{name[:32]:<32}  {found.n_slices:>6,}  {spacing:>9}  {tilt:>6}  {', '.join(found.words)}")
    if len(odd) > _TOLD:
        lines.append(f"… and {len(odd) - _TOLD:,} more in build.json")
    return lines


def series_records(series: Series) -> list[dict[str, Any]]:
    """All series as plain values, under the names that rows have for them."""
    return [{**asdict(found), "series": name, "words": list(found.words)} for name, found in series]
