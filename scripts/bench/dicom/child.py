"""Runs one contender of the DICOM benchmark once: ``python -m scripts.bench.dicom.child …``.

Prints one JSON line on standard output; whatever the contender prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from scripts.bench.child import measured
from scripts.bench.dicom.work import TASKS


def main(name: str, source: str, out: str, workers: int, task_name: str, checked: str) -> None:
    """Lets a contender do a task, or read headers if there is none; lays its first pictures into ``checked``.

    The time begins after the contender's libraries are imported and ends when all is written.
    """
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contender = importlib.import_module(f"scripts.bench.dicom.contenders.{name}")
    task, target, files = TASKS.get(task_name), Path(out), Path(source)
    counted = getattr(contender, "output_bytes", None)
    result = measured(lambda: contender.build(files, target, workers, task), target, counted)
    if task is not None:
        for stem, data in contender.stored(files, target, task).items():
            Path(checked, f"{stem}.{task.format}").write_bytes(data)
    answer.write(json.dumps(result) + "\n")
    answer.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6])
