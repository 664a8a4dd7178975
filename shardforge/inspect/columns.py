"""Plain tables: columns as wide as they need to be."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Rows of equal length as lines; the first ``left`` columns stand left, the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_cells(row, widths, left)).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    return [
        cell.ljust(width) if number < left else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
