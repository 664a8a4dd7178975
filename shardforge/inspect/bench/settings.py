"""How fast a loader is with several numbers of threads and workers, alone and beside a training step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shardforge.inspect.bench.unreadable import unreadable_in
from shardforge.inspect.bench.workload import Workload
from shardforge.stream.loader import ShardLoader

_WARMING = 0.25
"""Part of a measurement's time in which nothing is counted yet."""


@dataclass(frozen=True)
class Setting:
    """Of a loader: threads in each process that makes batches, and worker processes (0: the training process)."""

    workers: int
    threads: int

    @property
    def size(self) -> tuple[int, int]:
        """What it takes from the machine: processes first, then threads of all of them."""
        return self.workers, self.threads * max(1, self.workers)


@dataclass(frozen=True)
class Speed:
    """What one setting gave.

    Attributes:
        step_ms: length of the simulated training step; 0: batches were taken as fast as they came.
        rate: images per second.
        first: seconds from making the loader to its first batch.
        waits: p50 and p99 of the seconds that the training process waited for a batch.
        unreadable: numbers in the split of samples that could not be read; ``rate`` does not count them.
    """

    setting: Setting
    step_ms: float
    rate: float
    first: float
    waits: tuple[float, float]
    unreadable: frozenset[int] = frozenset()


def grid(processors: int) -> list[Setting]:
    """The settings worth trying on so many processors, from the smallest to the largest."""
    threads = {processors, *(1 << power for power in range(processors.bit_length()))}
    inside = [Setting(0, count) for count in sorted(threads)]
    if processors == 1:
        return [*inside, Setting(1, 1)]
    shared = [Setting(processors // 4, 4)] if processors >= 8 else []
    return [*inside, Setting(1, processors), *shared, Setting(processors, 1)]


def measure_setting(
    workload: Workload, setting: Setting, step_ms: float, seconds: float, report: Callable[[str], None]
) -> Speed:
    """Reads for about so many seconds, at least two batches. The step is slept through: as while a GPU works.

    Raises:
        StorageError, DamagedError: the dataset cannot be read.
    """
    beside = f" beside steps of {step_ms:g} ms" if step_ms else ""
    report(f"threads={setting.threads}, workers={setting.workers}{beside}, {seconds:.1f} s")
    began = time.perf_counter()
    unreadable = set[int]()
    with workload.loader(setting.threads, setting.workers) as loader:
        batches = _endless(loader)
        unreadable.update(next(batches))
        first = time.perf_counter() - began
        counted, waits = 0, list[float]()
        start = now = time.perf_counter()
        warm, end = start + _WARMING * seconds, start + seconds
        while now < end or not waits:
            asked = time.perf_counter()
            bad = next(batches)
            got = time.perf_counter()
            if step_ms:
                time.sleep(step_ms / 1000)
            now = time.perf_counter()
            unreadable.update(bad)
            if now < warm:
                start = now
            else:
                counted += workload.batch_size - len(bad)
                waits.append(got - asked)
        rate = counted / (now - start)
    p50, p99 = np.percentile(waits, [50, 99]).tolist()
    return Speed(setting, step_ms, rate, first, (p50, p99), frozenset(unreadable))


def _endless(loader: ShardLoader) -> Iterator[list[int]]:
    """Takes batches; gives the numbers of the samples in each that could not be read."""
    while True:
        plan = loader.plan()
        for step, batch in enumerate(loader):
            yield unreadable_in(plan, step, batch)
