"""The limits of a container count, not those of the machine around it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from shardforge.machine import inspect_machine


def test_a_containers_limits_are_found(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("536870912\n")
    machine = inspect_machine(tmp_path)
    assert machine.cpu_quota == 1.5
    assert machine.memory_bytes == 512 * 2**20


@pytest.mark.parametrize(("cpu", "memory"), [("max 100000", "max"), ("", ""), ("0 0", "x"), ("é", "é")])
def test_without_a_limit_the_whole_machine_counts(tmp_path: Path, cpu: str, memory: str) -> None:
    (tmp_path / "cpu.max").write_text(cpu)
    (tmp_path / "memory.max").write_text(memory)
    machine = inspect_machine(tmp_path)
    assert machine.cpu_quota is None
    kilobytes = next(
        int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")
    )
    assert machine.memory_bytes == kilobytes * 1024


def test_only_the_processors_this_process_may_use_are_counted() -> None:
    one = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{one}}})\n"
    code += "from shardforge.machine import inspect_machine; print(inspect_machine().cpus)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "1"


def test_open_files_is_the_soft_limit() -> None:
    assert inspect_machine().open_files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
