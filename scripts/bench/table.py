"""The benchmark's results as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripts.bench.quality import Quality

REFERENCE = "shardforge"


@dataclass(frozen=True)
class Run:
    """One run of a contender; seconds of time, bytes of memory and output."""

    seconds: float
    cpu_seconds: float
    peak_one: int
    peak_all: int
    output_bytes: int


@dataclass
class Result:
    """What a contender came to.

    Attributes:
        start: the same work over a handful of pictures: what a run costs before its first picture. None if not run.
        missing: why it did not take part, or failed.
    """

    runs: list[Run] = field(default_factory=list)
    start: Run | None = None
    quality: Quality | None = None
    missing: str | None = None

    def median(self, name: str) -> float:
        return float(statistics.median(getattr(run, name) for run in self.runs))


@dataclass(frozen=True)
class Speeds:
    """Pictures per second: of the whole run, and without what a run over ``few`` pictures takes."""

    whole: float
    steady: float | None


def speeds(result: Result, count: int, few: int) -> Speeds:
    seconds = result.median("seconds")
    steady = None
    if result.start is not None and count > few and seconds > result.start.seconds:
        steady = (count - few) / (seconds - result.start.seconds)
    return Speeds(count / seconds, steady)


_HEAD = (
    "contender",
    "images/s",
    "shardforge is",
    "steady images/s",
    "shardforge is",
    "start s",
    "CPU ms/image",
    "peak MB, one worker",
    "peak MB, all",
    "output MB",
    "PSNR dB (worst)",
    "SSIM",
)


def table(results: Mapping[str, Result], count: int, few: int) -> str:
    """A row for each contender; ratios are to :data:`REFERENCE` in the same run, medians over the repeats."""
    lines = [row(_HEAD), row(["---", *["---:"] * (len(_HEAD) - 1)])]
    reference = results.get(REFERENCE)
    ours = speeds(reference, count, few) if reference is not None and reference.runs else None
    for name, result in results.items():
        if not result.runs:
            lines.append(row([name, f"missing: {result.missing}", *[""] * (len(_HEAD) - 2)]))
            continue
        speed = speeds(result, count, few)
        quality = result.quality
        lines.append(
            row(
                [
                    name,
                    f"{speed.whole:.1f}",
                    _ratio(None if ours is None else ours.whole, speed.whole),
                    "" if speed.steady is None else f"{speed.steady:.1f}",
                    _ratio(None if ours is None else ours.steady, speed.steady),
                    "" if result.start is None else f"{result.start.seconds:.2f}",
                    f"{1000 * result.median('cpu_seconds') / count:.2f}",
                    _megabytes(result.median("peak_one")),
                    _megabytes(result.median("peak_all")),
                    f"{result.median('output_bytes') / 1e6:.1f}",
                    "" if quality is None else f"{quality.psnr:.2f} ({quality.psnr_least:.2f})",
                    "" if quality is None else f"{quality.ssim:.4f}",
                ]
            )
        )
    return "\n".join(lines)


def row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _ratio(ours: float | None, theirs: float | None) -> str:
    return "" if ours is None or theirs is None else f"{ours / theirs:.2f}×"


def _megabytes(value: float) -> str:
    return f"{value / 1e6:.0f}"
