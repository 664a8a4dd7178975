"""Where the time of a sample goes: batches made by one thread, with a clock between the stages.

Processor time is what is measured, so that other programs do not count; waiting counts only where the thread itself
gave its processor up, as it does for storage.
"""

from __future__ import annotations

import itertools
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from shardforge.errors import DamagedError, StorageError
from shardforge.inspect.bench.unreadable import unreadable_in
from shardforge.inspect.bench.workload import Workload
from shardforge.shards.index import Ids
from shardforge.shards.manifest import FieldInfo
from shardforge.stream.augment import Numbers, Shape, Transform
from shardforge.stream.batches import BatchJob
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.decode import Reduce
from shardforge.stream.fields import Gathered, Member
from shardforge.stream.planning import EpochPlan
from shardforge.stream.reader import Split
from shardforge.stream.resizing import Image
from shardforge.stream.share import Share
from shardforge.stream.slots import RecycledSlots

Seconds = npt.NDArray[np.float64]

STAGES = ("storage", "decode", "transform", "hand-over")
SLOWEST = 5
_MOST = 50_000
"""Samples, after which more would tell nothing new."""
_PAGE = 4096
_CONFIRMING = 0.25
"""Part of the time that goes to the slowest samples, beside."""
_CANDIDATES, _AGAIN = 24, 3
"""Samples that may be the slowest, and how often each is made again: once, anything may be slow by chance."""


@dataclass
class _Record:
    """One sample in the making; seconds. ``processor``: of all stages, without waiting; ``waited``: for storage."""

    number: int
    bytes: int
    storage: float
    decode: float
    shape: tuple[int, ...]
    processor: float
    waited: bool
    transform: float = 0.0

    @property
    def seconds(self) -> float:
        return self.storage + self.decode + self.transform


@dataclass
class _Log:
    """The samples of a batch. ``lost``: seconds that went to those that cannot be read."""

    records: list[_Record] = field(default_factory=list)
    lost: float = 0.0

    def clear(self) -> None:
        self.records.clear()
        self.lost = 0.0


@dataclass(frozen=True)
class SlowSample:
    """A sample that took long: seconds by stage, bytes as stored, the decoded array's shape."""

    key: str
    storage: float
    decode: float
    transform: float
    bytes: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Stages:
    """Seconds per sample.

    Attributes:
        samples: how many were measured.
        bytes: of their payloads.
        seconds: stage of :data:`STAGES` → float64. ``storage``: until the payload's pages were in memory; ``decode``;
            ``transform``: the crop, written into the batch; one number for each sample. ``hand-over``: finding the
            samples, drawing random numbers, putting the batch together; one number for each batch, divided by its
            rows.
        slowest: the :data:`SLOWEST` samples that took longest, longest first.
        unreadable: numbers in the split of samples that could not be read; no figure counts them.
    """

    samples: int
    bytes: int
    seconds: dict[str, Seconds]
    slowest: tuple[SlowSample, ...]
    unreadable: frozenset[int]

    @property
    def means(self) -> dict[str, float]:
        """Mean seconds of each stage."""
        return {name: float(values.mean()) for name, values in self.seconds.items()}


def measure_stages(workload: Workload, seconds: float, report: Callable[[str], None]) -> Stages:
    """Makes batches for about so many seconds, at least one.

    Raises:
        StorageError, DamagedError: the dataset cannot be read, or none of the samples of two epochs.
    """
    report(f"stages of a sample, {seconds:.0f} s")
    log = _Log()
    dataset = workload.dataset([_TimedTransform(step, log) for step in workload.transforms()])
    split, maker = dataset.source.split, dataset.source.maker
    maker.fields["image"] = _TimedMember(split, workload.field, split.manifest.fields[workload.field], log)
    share = dataset.share(0)
    # The first sample also loads and prepares what every later one finds.
    next(dataset.source.singles(0, share, range(1)))
    log.clear()
    rest: list[float] = []
    kept: list[_Record] = []
    unreadable = set[int]()
    end = time.perf_counter() + seconds
    with _one_thread():
        for number, (plan, step, job) in enumerate(_endless(dataset, share)):
            began = time.thread_time()
            batch = job.make_all()
            spent = time.thread_time() - began - log.lost
            unreadable.update(unreadable_in(plan, step, batch))
            rest.append((spent - sum(record.processor for record in log.records)) / workload.batch_size)
            kept += log.records
            log.clear()
            if kept and (time.perf_counter() >= end or len(kept) >= _MOST):
                break
            if not kept and number >= 2 * share.steps:
                raise DamagedError(f"none of {len(unreadable):,} samples can be read", where=workload.root)
            if not number:
                # Its memory was new, and the system had to clear it; that of the others is used again.
                rest.clear()
                kept.clear()
        slowest = _slowest(dataset, kept, log, time.perf_counter() + seconds * _CONFIRMING)
    columns = {name: np.array([getattr(record, name) for record in kept]) for name in STAGES[:3]}
    total = sum(record.bytes for record in kept)
    return Stages(len(kept), total, {**columns, STAGES[3]: np.maximum(rest, 0.0)}, slowest, frozenset(unreadable))


def _slowest(dataset: ShardDataset, records: list[_Record], log: _Log, end: float) -> tuple[SlowSample, ...]:
    """The samples that took longest, by the least that each takes when it is made again until ``end``."""
    longest = sorted({record.number: record for record in records}.values(), key=lambda record: -record.seconds)
    candidates = longest[:_CANDIDATES]
    ids = np.array([record.number for record in candidates])
    rows = dataset.source.maker.gather(ids, ids, 0)
    for again, row in itertools.product(range(_AGAIN), range(len(candidates))):
        if time.perf_counter() >= end:
            break
        dataset.source.maker.make(rows, row, ("image",))
        candidates[row] = _less(candidates[row], log.records.pop(), fresh=again == 0)
    candidates.sort(key=lambda record: -record.seconds)
    keys = dataset.source.split.index.keys(np.array([record.number for record in candidates]))
    return tuple(
        SlowSample(key, record.storage, record.decode, record.transform, record.bytes, record.shape)
        for key, record in zip(keys[:SLOWEST], candidates, strict=False)
    )


def _less(known: _Record, new: _Record, fresh: bool) -> _Record:
    """Of each stage the lesser time; waiting for storage stands, as the second reading finds it in memory. A
    ``fresh`` record has another crop than the first, which then says nothing of the transform."""
    return replace(
        known,
        storage=known.storage if known.waited else min(known.storage, new.storage),
        decode=min(known.decode, new.decode),
        transform=new.transform if fresh else min(known.transform, new.transform),
    )


def _endless(dataset: ShardDataset, share: Share) -> Iterator[tuple[EpochPlan, int, BatchJob]]:
    """Batches to be made, each with the plan of its epoch and its step there."""
    slots = RecycledSlots()
    for epoch in itertools.count():
        plan = dataset.plan(epoch)
        for step, job in enumerate(dataset.source.jobs(epoch, share, range(share.steps), slots)):
            yield plan, step, job


@contextmanager
def _one_thread() -> Iterator[None]:
    """OpenCV shares large images among threads of its own, whose time would be missed."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(before)


class _TimedMember(Member):
    """A member whose decoding leaves a record."""

    def __init__(self, split: Split, name: str, info: FieldInfo, log: _Log) -> None:
        super().__init__(split, name, info)
        self._files, self._log = split.files, log

    def images(self, ids: Ids, gathered: Gathered) -> Callable[[int, Reduce | None], Any]:
        return lambda row, reduce: self.decoded(int(ids[row]), gathered[row], reduce, False)

    def decoded(
        self, number: int, gathered: tuple[int, int, int], reduce: Reduce | None = None, copy: bool = True
    ) -> Any:
        began, waited, switches = time.thread_time(), time.perf_counter(), _switches()
        if gathered[2] > 0:
            # A byte of every page, so that the decoder waits for none.
            np.frombuffer(self._files.view(*gathered), np.uint8)[::_PAGE].max()
        read = time.thread_time()
        gave_up = _switches() > switches
        storage = time.perf_counter() - waited if gave_up else read - began
        try:
            value = super().decoded(number, gathered, reduce, copy)
        except (DamagedError, StorageError):
            self._log.lost += time.thread_time() - began
            raise
        spent = time.thread_time() - began
        decode = spent - (read - began)
        self._log.records.append(_Record(number, gathered[2], storage, decode, value.shape, spent, gave_up))
        return value


def _switches() -> int:
    """How often this thread gave its processor up of its own accord: to wait for something."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


class _TimedTransform(Transform):
    """A transform that adds its time to the record of the sample that was decoded last."""

    def __init__(self, inner: Transform, log: _Log) -> None:
        self._inner, self._log, self.draws = inner, log, inner.draws

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        began = time.thread_time()
        result = self._inner.apply(image, numbers, full, out)
        spent = time.thread_time() - began
        record = self._log.records[-1]
        record.transform += spent
        record.processor += spent
        return result

    def size(self, before: Shape | None) -> Shape | None:
        return self._inner.size(before)

    def spare(self, height: int, width: int, numbers: Numbers) -> float:
        return self._inner.spare(height, width, numbers)
