"""What a bench found, as JSON and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shardforge.inspect.bench.advice import Advice
from shardforge.inspect.bench.settings import Speed
from shardforge.inspect.bench.stages import STAGES, Seconds, SlowSample, Stages
from shardforge.inspect.bench.unreadable import Unreadable
from shardforge.inspect.bench.workload import Workload
from shardforge.inspect.columns import aligned
from shardforge.text import plain, size

_POINTS = {"p50": 50, "p90": 90, "p99": 99, "max": 100}


@dataclass(frozen=True)
class BenchReport:
    """What a bench found.

    Attributes:
        processors: that this process may use.
    """

    workload: Workload
    processors: int
    stages: Stages
    speeds: tuple[Speed, ...]
    advice: Advice
    unreadable: Unreadable

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``json.dumps``; times in milliseconds."""
        work, stages = self.workload, self.stages
        return {
            "path": str(work.root),
            "split": work.split,
            "samples": work.samples,
            "field": work.field,
            "batch_size": work.batch_size,
            "crop": work.crop,
            "padded": work.padded,
            "processors": self.processors,
            "measured_samples": stages.samples,
            "measured_bytes": stages.bytes,
            "stages_ms": {name: _summary(stages.seconds[name]) for name in STAGES},
            "settings": [_speed(speed) for speed in self.speeds],
            "slowest": [_slow(sample) for sample in stages.slowest],
            "binds": self.advice.binds,
            "why": self.advice.why,
            "use": asdict(self.advice.use),
            "unreadable": self.unreadable.to_json(),
        }

    def lines(self) -> list[str]:
        """Text for people; whatever came from users is safe for a terminal."""
        parts = [self._head(), self._stages(), self._speeds(), self._slowest(), self._advice(), self._unreadable()]
        return [line for part in parts if part for line in ("", *part)][1:]

    def _head(self) -> list[str]:
        work = self.workload
        how = f"random crops of {work.crop}, flips" if work.crop else "as stored" + ", padded" * work.padded
        rows = [
            ["dataset", f"{plain(str(work.root))}, split {plain(work.split)}: {work.samples:,} samples"],
            ["reading", f"{work.field}, {how}, batches of {work.batch_size}, {self.processors} processors"],
        ]
        return aligned(rows, left=2)

    def _stages(self) -> list[str]:
        means = self.stages.means
        total = sum(means.values()) or 1.0
        rows = [["ms per sample, one thread", "mean", *_POINTS, "share"]]
        for name in STAGES:
            values = _summary(self.stages.seconds[name])
            rows.append([f"  {name}", *(f"{value:.3f}" for value in values.values()), f"{means[name] / total:.0%}"])
        rows.append(["  sum", f"{1000 * total:.3f}", *[""] * len(_POINTS), ""])
        mean = size(self.stages.bytes / self.stages.samples)
        return [*aligned(rows), f"  {self.stages.samples:,} samples, {mean} each"]

    def _speeds(self) -> list[str]:
        rows = [["setting", "step ms", "images/s", "first batch s", "wait ms p50", "p99"]]
        for speed in self.speeds:
            name = f"  threads={speed.setting.threads}, workers={speed.setting.workers}"
            waits = (f"{1000 * wait:.1f}" for wait in speed.waits)
            rows.append([name, f"{speed.step_ms:g}", f"{speed.rate:,.0f}", f"{speed.first:.2f}", *waits])
        return aligned(rows)

    def _slowest(self) -> list[str]:
        rows = [["slowest samples", "ms", "storage", "decode", "transform", "bytes", "shape"]]
        for sample in self.stages.slowest:
            times = (sample.storage, sample.decode, sample.transform)
            shape = " x ".join(map(str, sample.shape))
            numbers = (f"{1000 * value:.2f}" for value in (sum(times), *times))
            rows.append([f"  {plain(sample.key)}", *numbers, size(sample.bytes), shape])
        return aligned(rows)

    def _advice(self) -> list[str]:
        names = {"storage": "storage", "CPU": "the CPU", "hand-over": "the hand-over", "step": "the training step"}
        use = self.advice.use
        rows = [
            ["binds", f"{names[self.advice.binds]}: {self.advice.why}"],
            ["use", f"ShardLoader(..., threads={use.threads}, workers={use.workers})"],
        ]
        return aligned(rows, left=2)

    def _unreadable(self) -> list[str]:
        count, first = self.unreadable.samples, self.unreadable.first
        if not count:
            return []
        head = f"UNREADABLE: {count:,} of the samples that were read; no figure above counts them"
        rows = [[f"  {plain(sample.key)}", plain(sample.what)] for sample in first]
        more = [f"  and {count - len(first):,} more"] if count > len(first) else []
        return [head, *aligned(rows, left=2), *more, "`shardforge inspect --verify` checks the whole dataset"]


def _summary(values: Seconds) -> dict[str, float]:
    points = np.percentile(values, list(_POINTS.values())).tolist()
    return {"mean": 1000 * float(values.mean())} | {
        name: 1000 * value for name, value in zip(_POINTS, points, strict=True)
    }


def _speed(speed: Speed) -> dict[str, Any]:
    p50, p99 = speed.waits
    return {
        **asdict(speed.setting),
        "step_ms": speed.step_ms,
        "images_per_second": speed.rate,
        "first_batch_ms": 1000 * speed.first,
        "wait_ms": {"p50": 1000 * p50, "p99": 1000 * p99},
    }


def _slow(sample: SlowSample) -> dict[str, Any]:
    times = {name: 1000 * float(getattr(sample, name)) for name in STAGES[:3]}
    return {"key": sample.key, "ms": times, "bytes": sample.bytes, "shape": list(sample.shape)}
