"""``shardforge bench``: measures reading a dataset on this machine."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from shardforge.errors import UsageError
from shardforge.inspect.bench.advice import advise
from shardforge.inspect.bench.report import BenchReport
from shardforge.inspect.bench.settings import grid, measure_setting
from shardforge.inspect.bench.stages import measure_stages
from shardforge.inspect.bench.unreadable import describe
from shardforge.inspect.bench.workload import choose_workload
from shardforge.stream.tally import logger
from shardforge.stream.threads import choose_threads

_STAGES = 0.25
"""Part of the time that goes to the stages; the settings share the rest."""
_ROUNDS = 2
"""How often each setting is measured, in turns; the faster time counts."""


def bench(
    root: Path,
    *,
    split: str | None = None,
    batch_size: int = 256,
    crop: int | None = None,
    seconds: float = 20.0,
    step_ms: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> BenchReport:
    """Measures where the time goes when a split is read, and which setting of the loader is best. Only reads.

    Args:
        split, batch_size, crop: see :func:`choose_workload`.
        seconds: about how long to measure in all; every measurement takes at least a batch or two.
        step_ms: also measure beside training steps of so many milliseconds.
        progress: told what is measured.

    Raises:
        UsageError: an option makes no sense for this dataset.
        StorageError, DamagedError: the dataset cannot be read, or none of its samples. Single ones that cannot be
            read are in the report.
    """
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--seconds {seconds:g}: a positive number")
    if not 0 <= step_ms < float("inf"):
        raise UsageError(f"--step-ms {step_ms:g}: milliseconds, or 0 for none")
    report = progress or (lambda line: None)
    workload = choose_workload(root, split, batch_size, crop)
    processors = choose_threads(None, 0)
    settings = grid(processors)
    steps = (0.0, step_ms) if step_ms else (0.0,)
    tried = [(setting, step) for setting in settings for step in steps]
    each = (1 - _STAGES) * seconds / len(tried) / _ROUNDS
    with _silent():
        stages = measure_stages(workload, _STAGES * seconds, report)
        rounds = [[measure_setting(workload, *one, each, report) for one in tried] for _ in range(_ROUNDS)]
    # What else runs on the machine only ever slows down.
    speeds = tuple(max(same, key=lambda speed: speed.rate) for same in zip(*rounds, strict=True))
    bad = stages.unreadable.union(*(speed.unreadable for speed in itertools.chain(*rounds)))
    advice = advise(stages.means, speeds, workload.batch_size)
    return BenchReport(workload, processors, stages, speeds, advice, describe(workload, bad))


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Every loader would log what it masks; the report tells it once."""
    logger.addFilter(_no_record)
    try:
        yield
    finally:
        logger.removeFilter(_no_record)


def _no_record(record: logging.LogRecord) -> bool:
    return False
