"""What this machine or container gives to one process: processors, memory, shared memory, open files."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Machine:
    """Limits in force when `inspect_machine` looked.

    Attributes:
        cpus: processors this process may run on.
        cpu_quota: processors' worth of time a container may use, None without a limit.
        memory_bytes: of the machine or the container, whichever is less; None where unknown.
        shared_memory_bytes: size of /dev/shm, None where there is none.
        open_files: soft RLIMIT_NOFILE, None without a limit.
    """

    cpus: int
    cpu_quota: float | None
    memory_bytes: int | None
    shared_memory_bytes: int | None
    open_files: int | None


def inspect_machine(cgroup: Path = CGROUP) -> Machine:
    """Reads the limits; what cannot be read is None. ``cgroup``: where the container's limits stand (cgroup v2)."""
    return Machine(
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        cpu_quota=_cpu_quota(cgroup / "cpu.max"),
        memory_bytes=_memory(cgroup / "memory.max"),
        shared_memory_bytes=_shared_memory(),
        open_files=_open_files(),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _cpu_quota(path: Path) -> float | None:
    try:
        quota, period = _read(path).split()
        return int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return None


def _memory(path: Path) -> int | None:
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    limit = _read(path)
    return min(installed, int(limit)) if limit.isdecimal() else installed


def _shared_memory() -> int | None:
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return None
    return status.f_frsize * status.f_blocks


def _open_files() -> int | None:
    try:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (OSError, ValueError):
        return None
    return None if soft == resource.RLIM_INFINITY else soft
