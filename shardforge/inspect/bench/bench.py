"""``shardforge bench``: measures reading a dataset on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shardforge.errors import UsageError
from shardforge.inspect.bench.advice import advise
from shardforge.inspect.bench.report import BenchReport
from shardforge.inspect.bench.settings import grid, measure_setting
from shardforge.inspect.bench.stages import measure_stages
from shardforge.inspect.bench.workload import choose_workload
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
        StorageError, DamagedError: the dataset or a sample cannot be read.
    """
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--seconds {seconds:g}: a positive number")
    if not 0 <= step_ms < float("inf"):
        raise UsageError(f"--step-ms {step_ms:g}: milliseconds, or 0 for none")
    report = progress or (lambda line: None)
    workload = choose_workload(root, split, batch_size, crop)
    processors = choose_threads(None, 0)
    stages = measure_stages(workload, _STAGES * seconds, report)
    settings = grid(processors)
    steps = (0.0, step_ms) if step_ms else (0.0,)
    tried = [(setting, step) for setting in settings for step in steps]
    each = (1 - _STAGES) * seconds / len(tried) / _ROUNDS
    rounds = [[measure_setting(workload, *one, each, report) for one in tried] for _ in range(_ROUNDS)]
    # What else runs on the machine only ever slows down.
    speeds = tuple(max(same, key=lambda speed: speed.rate) for same in zip(*rounds, strict=True))
    return BenchReport(workload, processors, stages, speeds, advise(stages.means, speeds, workload.batch_size))
