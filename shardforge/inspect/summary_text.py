"""A summary as people read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shardforge.inspect.columns import aligned
from shardforge.inspect.tally import Sizes
from shardforge.shards.catalogue import Status
from shardforge.text import plain, size

if TYPE_CHECKING:
    from shardforge.inspect.summary import Summary

CLASSES = 20
"""Classes that the text names; all of them are in the JSON."""
_ESSENTIALS = ("size", "resize", "format", "quality")


def summary_lines(summary: Summary) -> list[str]:
    """Splits, classes, sizes, formats, problems and flags, with a blank line between the parts."""
    parts = [
        _head(summary),
        _splits(summary),
        _classes(summary),
        [*_sizes("image sizes", summary.sizes), *_sizes("original sizes", summary.original_sizes)],
        _counts("original formats", summary.formats),
        _channels(summary),
        _problems(summary),
        _counts("flags", summary.flags),
    ]
    lines: list[str] = []
    for part in parts:
        if part:
            lines += ["", *part] if lines else part
    return lines


def _head(summary: Summary) -> list[str]:
    made = [f"{name} {_option(summary.recipe[name])}" for name in _ESSENTIALS if name in summary.recipe]
    fields = ", ".join(f"{name} ({kind})" for name, kind in summary.fields.items())
    labels = {
        "class": f"one of {len(summary.classes):,} classes",
        "multi": f"any of {len(summary.classes):,} classes",
        "number": "a number" if summary.label_size == 1 else f"{summary.label_size:,} numbers",
        "none": "none",
    }
    rows = [
        ["dataset", plain(summary.path)],
        ["format", f"{summary.format}, fingerprint {summary.fingerprint}"],
        ["recipe", ", ".join([*made, f"seed {summary.seed}"])],
        ["fields", plain(fields)],
        ["labels", labels[summary.label_kind]],
    ]
    return aligned(rows, left=2)


def _option(value: Any) -> str:
    return plain("x".join(map(str, value)) if isinstance(value, list) else str(value))


def _splits(summary: Summary) -> list[str]:
    titles = ["split", "samples", "shards", "bytes", "mean shard", *(status.value for status in list(Status)[1:])]
    rows = [titles]
    for name, split in summary.splits.items():
        counts = (split.failed, split.filtered, split.skipped)
        sizes = [size(split.bytes), size(split.mean_shard_bytes)]
        rows.append([name, f"{split.samples:,}", f"{split.shards:,}", *sizes, *(f"{count:,}" for count in counts)])
    if len(summary.splits) > 1:
        every = summary.splits.values()
        shards, total = sum(s.shards for s in every), sum(s.bytes for s in every)
        lost = [sum(s.failed for s in every), sum(s.filtered for s in every), sum(s.skipped for s in every)]
        mean = size(total / shards) if shards else "-"
        rows.append(["all", f"{summary.samples:,}", f"{shards:,}", size(total), mean, *(f"{n:,}" for n in lost)])
    return aligned(rows)


def _classes(summary: Summary) -> list[str]:
    if not summary.classes:
        return []
    # sorted() is stable: equal counts stay in the order of class ids.
    largest = sorted(summary.classes.items(), key=lambda entry: -sum(entry[1].values()))
    rows = [["class", *summary.splits]]
    rows += [[plain(name), *(f"{count:,}" for count in counts.values())] for name, counts in largest[:CLASSES]]
    rest = len(largest) - CLASSES
    return aligned(rows) + ([f"… and {rest:,} smaller classes"] if rest > 0 else [])


def _sizes(title: str, sizes: Sizes | None) -> list[str]:
    if sizes is None:
        return []
    rows = [[title, "min", "median", "max"]]
    for name, span in (("  width", sizes.width), ("  height", sizes.height)):
        rows.append([name, f"{span.low:,}", f"{span.median:,}", f"{span.high:,}"])
    common = ", ".join(f"{width}x{height} ({count:,})" for width, height, count in sizes.common)
    rest = sizes.distinct - len(sizes.common)
    return [*aligned(rows), f"  most frequent: {common}" + (f", {rest:,} other sizes" if rest else "")]


def _channels(summary: Summary) -> list[str]:
    rows = [["channels", "mean", "std"]]
    for name, split in summary.splits.items():
        if split.mean is not None and split.std is not None:
            rows.append(
                [f"  {name}", *(" ".join(f"{value:.4f}" for value in row) for row in (split.mean, split.std))]
            )
    return aligned(rows) if len(rows) > 1 else []


def _problems(summary: Summary) -> list[str]:
    lines = []
    for problem in summary.problems:
        reason = "" if problem.reason is None else f" {problem.reason}"
        rest = problem.count - len(problem.examples)
        examples = ", ".join(map(plain, problem.examples)) + (f", and {rest:,} more" if rest else "")
        lines.append(f"  {problem.count:,} {problem.status}{reason}: {examples}")
    return ["items without a sample", *lines] if lines else []


def _counts(title: str, counts: Mapping[str, int]) -> list[str]:
    return [title, *(f"  {line}" for line in aligned([[n, f"{c:,}"] for n, c in counts.items()]))] if counts else []
