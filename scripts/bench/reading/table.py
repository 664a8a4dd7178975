"""The reading benchmark's results as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scripts.bench.reading.contestants import CONTENDERS, REFERENCES, Payload
from scripts.bench.table import row

_HEAD = (
    "contender",
    "images/s",
    "shardforge is",
    "from … to",
    "first batch s",
    "CPU s / 1 000 images",
    "shardforge is",
    "peak MB, all processes",
)


@dataclass
class Result:
    """What a contender came to.

    Attributes:
        runs: what ``child.read`` gave in every round.
        missing: why it did not take part, or failed.
    """

    runs: list[dict[str, float]] = field(default_factory=list)
    missing: str | None = None

    def median(self, name: str) -> float:
        return float(statistics.median(run[name] for run in self.runs))


def table(results: Mapping[str, Result], payload: Payload) -> str:
    """A row for each contender with this payload. Speeds are medians over the rounds; ratios are medians of the
    ratios within each round, those of speeds beside the least and the greatest of them. Ratios of processor time hold
    also where other programs take turns on the machine."""
    lines = [row(_HEAD), row(["---", *["---:"] * (len(_HEAD) - 1)])]
    reference = results.get(REFERENCES[payload])
    ours = reference.runs if reference is not None else []
    for name, result in results.items():
        contender = CONTENDERS[name]
        if contender.payload != payload:
            continue
        if not result.runs:
            lines.append(row([contender.title, f"missing: {result.missing}", *[""] * (len(_HEAD) - 2)]))
            continue
        ratios = [mine["rate"] / theirs["rate"] for mine, theirs in zip(ours, result.runs, strict=False)]
        processor = [theirs["cpu"] / mine["cpu"] for mine, theirs in zip(ours, result.runs, strict=False)]
        lines.append(
            row(
                [
                    contender.title,
                    f"{result.median('rate'):,.0f}",
                    f"{statistics.median(ratios):.2f}×" if ratios else "",
                    f"{min(ratios):.2f} … {max(ratios):.2f}" if ratios else "",
                    f"{result.median('first'):.2f}",
                    f"{result.median('cpu'):.3f}",
                    f"{statistics.median(processor):.2f}×" if processor else "",
                    f"{result.median('peak') / 1e6:.0f}",
                ]
            )
        )
    return "\n".join(lines)


def extras_table(extras: Mapping[str, Mapping[str, Any]]) -> str:
    """What was measured beside speed, one row each: title → unit → value."""
    rows = [row(["also", "value"]), row(["---", "---:"])]
    rows += [
        row([title, f"{value:,.2f} {unit}"]) for title, values in extras.items() for unit, value in values.items()
    ]
    return "\n".join(rows)
