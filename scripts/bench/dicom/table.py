"""The results of the DICOM benchmark as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scripts.bench.table import Result, row


@dataclass
class Measured(Result):
    """``difference``: from the ideal, in grey levels."""

    difference: float | None = None


def each(result: Result, name: Literal["seconds", "cpu_seconds"], count: int, few: int) -> float | None:
    """Seconds an image takes: the median of the runs, without what a run over ``few`` images takes."""
    if not result.runs or result.start is None or count <= few:
        return None
    spent = result.median(name) - getattr(result.start, name)
    return spent / (count - few) if spent > 0 else None


_HEAD = (
    "contender",
    "images/s",
    "shardforge is",
    "CPU ms/image",
    "of shardforge's",
    "start s",
    "peak MB, one worker",
    "output KB/image",
    "levels off",
)


def table(results: Mapping[str, Measured], count: int, few: int, reference: str) -> str:
    """A row for each contender; ratios are to ``reference`` in the same run."""
    lines = [row(_HEAD), row(["---", *["---:"] * (len(_HEAD) - 1)])]
    ours = results.get(reference, Measured())
    for name, result in results.items():
        if not result.runs or result.start is None:
            lines.append(row([name, f"missing: {result.missing}", *[""] * (len(_HEAD) - 2)]))
            continue
        seconds, cpu = each(result, "seconds", count, few), each(result, "cpu_seconds", count, few)
        our_seconds, our_cpu = each(ours, "seconds", count, few), each(ours, "cpu_seconds", count, few)
        lines.append(
            row(
                [
                    name,
                    "" if seconds is None else f"{1 / seconds:.1f}",
                    "" if seconds is None or our_seconds is None else f"{seconds / our_seconds:.2f}×",
                    "" if cpu is None else f"{1000 * cpu:.2f}",
                    "" if cpu is None or our_cpu is None else f"{cpu / our_cpu:.2f}×",
                    f"{result.start.seconds:.2f}",
                    f"{result.median('peak_one') / 1e6:.0f}",
                    f"{result.median('output_bytes') / 1e3 / count:.1f}",
                    "" if result.difference is None else f"{result.difference:.2f}",
                ]
            )
        )
    return "\n".join(lines)
