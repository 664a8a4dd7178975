"""What a process and its descendants use (Linux)."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

_INTERVAL = 0.1


class Usage:
    """Watches this process and its descendants from a thread, between entering and leaving the context.

    Attributes:
        peak_one: the largest resident size any one descendant (or this process, if it has none) ever had, in bytes.
        peak_all: the largest sum of the resident sizes of all of them at one moment; shared pages count repeatedly.
        cpu_seconds: processor time of all that have ended, and of this process.
    """

    def __init__(self) -> None:
        self.peak_one = self.peak_all = 0
        self._own = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._began = 0.0

    def __enter__(self) -> Usage:
        self._began = _cpu_seconds()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.peak_one = self.peak_one or self._own
        self.cpu_seconds = _cpu_seconds() - self._began

    def _watch(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_INTERVAL)
            own, *others = (_memory(folder) for folder in _family(Path("/proc/self")))
            self._own = max(self._own, own[1])
            self.peak_one = max([self.peak_one, *(peak for _, peak in others)])
            self.peak_all = max(self.peak_all, own[0] + sum(now for now, _ in others))


def _cpu_seconds() -> float:
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _family(process: Path) -> Iterator[Path]:
    yield process
    try:
        children = [pid for task in (process / "task").iterdir() for pid in (task / "children").read_text().split()]
    except OSError:
        # It has ended.
        return
    for pid in children:
        yield from _family(Path("/proc", pid))


def _memory(process: Path) -> tuple[int, int]:
    """Resident bytes now, and the most they have been."""
    try:
        lines = (line.split() for line in (process / "status").read_text().splitlines())
        values = {line[0]: int(line[1]) * 1024 for line in lines if line and line[0] in ("VmRSS:", "VmHWM:")}
    except OSError:
        values = {}
    return values.get("VmRSS:", 0), values.get("VmHWM:", 0)


def family_cpu_seconds() -> float:
    """Processor time of this process, its living descendants, and those that have been waited for."""
    ticks = 0
    for process in _family(Path("/proc/self")):
        try:
            # The name in parentheses may hold anything; utime, stime, cutime and cstime are fields 14 to 17.
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def family_memory() -> int:
    """Resident bytes of this process and its descendants now; shared pages count repeatedly."""
    return sum(_memory(process)[0] for process in _family(Path("/proc/self")))
