"""The codec bound in processes whose memory allocator is set like that of this project's workers."""

from __future__ import annotations

import os
from pathlib import Path

from scripts.bench.dicom.contenders import bound
from scripts.bench.dicom.work import Task
from shardforge.compile.engines.local import KEPT_MEMORY

output_bytes = bound.output_bytes
stored = bound.stored


def build(source: Path, out: Path, workers: int, task: Task) -> None:
    os.environ.update(KEPT_MEMORY)
    # The allocator reads its settings when a program starts, so the pool cannot be forked.
    bound.build(source, out, workers, task, start="spawn")
