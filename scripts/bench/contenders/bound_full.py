"""The codec bound with every picture decoded in full."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scripts.bench.contenders import bound

output_bytes = bound.output_bytes


def build(source: Path, out: Path, workers: int) -> None:
    bound.build(source, out, workers, reduce=False)


def stored(out: Path) -> Iterator[tuple[str, bytes]]:
    return bound.stored(out, reduce=False)
