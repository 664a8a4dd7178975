"""The expendable process that runs shard tasks, started by :mod:`shardforge.compile.engines.local`.

It reads one JSON task per line from standard input and writes one JSON message per line to standard output: failures
as they happen, then the result. What libraries print goes to standard error. It never outlives its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

EXIT_OUT_OF_MEMORY = 77
"""Exit code of a worker whose item needed more memory than it may use."""

_REPORTED = 50
"""Failures told per task; the parquet has them all."""


def main(marker_path: str, memory: int, parent: int) -> None:
    """Serves tasks until standard input ends.

    Args:
        marker_path: file for :class:`~shardforge.compile.task.Marker`.
        memory: bytes to allow beyond what is in use once libraries are loaded.
        parent: process id; when it is gone, so is this process.
    """
    _die_with(parent)
    messages = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    import cv2

    from shardforge.compile.shard_task import Marker, ShardTask
    from shardforge.compile.task import run_shard_task

    cv2.setNumThreads(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(memory)

    def send(message: Mapping[str, Any]) -> None:
        messages.write(json.dumps(message) + "\n")

    marker = Marker(Path(marker_path))
    send({"ready": True})
    for line in sys.stdin:
        task = ShardTask.from_plain(json.loads(line))
        left = _REPORTED

        def report(source: str, reason: str, detail: str) -> None:
            nonlocal left
            left -= 1
            if left >= 0:
                send({"failure": [source, reason, detail[:500]]})

        try:
            send({"result": asdict(run_shard_task(task, marker, report))})
        except MemoryError:
            os._exit(EXIT_OUT_OF_MEMORY)
        except OSError as error:
            where = error.filename if isinstance(error.filename, str) else task.staging
            send({"error": [error.errno, error.strerror or str(error), where]})


def _die_with(parent: int) -> None:
    """Asks Linux to kill this process when its parent dies, however it dies."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _limit_memory(memory: int) -> None:
    """Limits the writable memory of this process; mapped libraries and files do not count (Linux 4.7 and later)."""
    status = Path("/proc/self/status").read_text()
    used = 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = used + memory if hard == resource.RLIM_INFINITY else min(used + memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
