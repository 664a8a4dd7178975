"""Runs one contender once, in a process and an environment of its own: ``python -m scripts.bench.child …``.

Prints one JSON line on standard output; whatever the contender prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from scripts.bench.usage import Usage
from scripts.bench.work import CHECKED, sources


def main(name: str, source: str, out: str, workers: int, checked: str) -> None:
    """Builds ``source`` into ``out``; lays the first stored pictures into the folder ``checked``.

    The time begins after the contender's libraries are imported and ends when all is written.
    """
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contender = importlib.import_module(f"scripts.bench.contenders.{name}")
    target = Path(out)
    counted = getattr(contender, "output_bytes", None)
    result = measured(lambda: contender.build(Path(source), target, workers), target, counted)
    _lay_out(contender.stored(target), Path(source), Path(checked))
    answer.write(json.dumps(result) + "\n")
    answer.flush()


def measured(
    work: Callable[[], None], target: Path, output_bytes: Callable[[Path], int] | None = None
) -> dict[str, float | int]:
    """A :class:`~scripts.bench.table.Run` of some work that fills the folder ``target``.

    Args:
        output_bytes: tells what was made, where that is not the size of the files.
    """
    with Usage() as usage:
        began = time.perf_counter()
        work()
        seconds = time.perf_counter() - began
    files = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return {
        "seconds": seconds,
        "cpu_seconds": usage.cpu_seconds,
        "peak_one": usage.peak_one,
        "peak_all": usage.peak_all,
        "output_bytes": files if output_bytes is None else output_bytes(target),
    }


def _lay_out(stored: Iterator[tuple[str, bytes]], source: Path, folder: Path) -> None:
    wanted = {path.stem for path in islice(sources(source), CHECKED)}
    for name, data in stored:
        if name in wanted:
            (folder / f"{name}.jpg").write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
