"""The local engine: a pool of expendable processes, one shard task each at a time.

A worker marks the item it works on. When it dies (a crash in a decoder, a kill, the memory limit, the CPU-time
limit), a fresh one takes over at that very item, which is thereby tried once more alone; when it dies there again,
the item becomes a failed row. A process that is killed from outside need not be to blame, for a shortage of memory
say: that is borne more often. Nothing else is lost: what the shard's journal holds is kept, and neighbours never
notice. Each worker has pipes of its own, so that killing one at any moment can never block another.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from shardforge.compile.shard_task import Marker, ShardTask
from shardforge.compile.staging import ShardResult
from shardforge.compile.worker import EXIT_OUT_OF_MEMORY
from shardforge.errors import ShardforgeError
from shardforge.shards.catalogue import Reason
from shardforge.storage import explain

_TICK = 0.2
"""Seconds between looks at the workers' progress."""
_DYING = 10.0
"""Seconds a worker that has closed its pipe may take to be gone."""
_DEATHS = 2
"""An item that a process died on so often, of itself, is given up."""
_KILLS = 4
"""The same if it was killed, with SIGKILL, every time but one."""
_FRUITLESS = 5
"""Deaths without an item in the works after which a task is given up: no item is to blame."""


KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(64 * 2**20)}
"""glibc's own upper bounds (mallopt(3)) for what a process keeps, instead of giving it back to the system: fetching
pages anew for every picture takes as long as resizing it."""

# The worker finds modules where its parent does, installed or not; and nothing of the parent's script is run again.
_WORKER = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from shardforge.compile.worker import main
main(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
"""


@dataclass(frozen=True)
class Failure:
    """An item failed: its source, why, and text for the log."""

    source: str
    reason: Reason
    detail: str


@dataclass(frozen=True)
class Progress:
    """What the shards in flight have come to: items done and failed, bytes read and written."""

    done: int
    failed: int
    read: int
    written: int


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    marker: Marker
    buffer: bytes = b""
    task: ShardTask | None = None
    deaths: dict[int, list[int]] = field(default_factory=dict)
    """Of the task's items: the exit codes of processes that died on them."""


class WorkerPool:
    """Runs shard tasks in worker processes of this machine.

    Args:
        workers: how many processes.
        staging: folder for the workers' markers.
        memory: bytes each worker may use beyond what it needs to start.
        lock: file descriptor of the build's lock, which workers inherit.
    """

    def __init__(self, workers: int, staging: Path, memory: int, lock: int | None = None) -> None:
        self.workers, self._staging, self._memory, self._lock = workers, staging, memory, lock
        self._log: IO[bytes] = tempfile.TemporaryFile()
        self._selector = selectors.DefaultSelector()
        self._alive: dict[int, _Worker] = {}

    def run(self, tasks: Sequence[ShardTask]) -> Iterator[ShardResult | Failure | Progress]:
        """Runs all tasks, yielding results in the order in which they come, failures, and regular progress.

        Raises:
            StorageError: a shard cannot be written.
            ShardforgeError: workers cannot be started.
        """
        waiting = deque(tasks)
        for number in range(min(self.workers, len(tasks))):
            self._give(self._alive.get(number) or self._start(number), waiting)
        while any(worker.task is not None for worker in self._alive.values()):
            for key, _ in self._selector.select(_TICK):
                slot: int = key.data
                worker = self._alive[slot]
                data = os.read(key.fd, 1 << 16)
                if not data:
                    self._replace(slot)
                    continue
                *lines, worker.buffer = (worker.buffer + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    if "result" in message:
                        worker.deaths.clear()
                        self._give(worker, waiting)
                        yield ShardResult(**message["result"])
                    elif "failure" in message:
                        source, reason, detail = message["failure"]
                        yield Failure(source, Reason(reason), detail)
                    elif "error" in message:
                        raise explain(OSError(*message["error"]), self._staging)
            yield self._progress()

    def close(self) -> None:
        """Ends all workers at once; shards in flight are left to the next build."""
        for worker in self._alive.values():
            self._end(worker)
        self._alive.clear()
        self._selector.close()
        self._log.close()

    def _start(self, slot: int) -> _Worker:
        marker_path = self._staging / f"worker-{slot}.mark"
        marker = Marker(marker_path)
        marker.clear()
        arguments = [json.dumps(sys.path), str(marker_path), str(self._memory), str(os.getpid())]
        process = subprocess.Popen(
            [sys.executable, "-c", _WORKER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(),
            # A session of its own: Ctrl-C reaches the build, which then ends its workers in order.
            start_new_session=True,
            pass_fds=() if self._lock is None else (self._lock,),
        )
        assert process.stdout is not None
        worker = _Worker(process, marker)
        self._alive[slot] = worker
        self._selector.register(process.stdout, selectors.EVENT_READ, slot)
        return worker

    def _give(self, worker: _Worker, waiting: deque[ShardTask]) -> None:
        worker.task = waiting.popleft() if waiting else None
        worker.marker.clear()
        if worker.task is not None:
            _send(worker, worker.task)

    def _replace(self, slot: int) -> None:
        """A worker has died: its successor goes on where it stood."""
        dead = self._alive[slot]
        position = dead.marker.read()[0]
        # Its pipe closes a moment before the process is gone; killing it now would hide what it died of.
        with contextlib.suppress(subprocess.TimeoutExpired):
            dead.process.wait(_DYING)
        self._end(dead)
        self._selector.unregister(dead.process.stdout)  # type: ignore[arg-type]
        codes = dead.deaths.setdefault(position, [])
        codes.append(dead.process.returncode)
        if position < 0 and len(codes) >= _FRUITLESS:
            raise self._fruitless(dead.process.returncode)
        worker = self._start(slot)
        worker.deaths, task = dead.deaths, dead.task
        if task is None:
            return
        doomed = dict(task.doomed or {})
        if position >= 0 and (len(codes) >= _KILLS or len(codes) - codes.count(-signal.SIGKILL) >= _DEATHS):
            doomed[position] = _cause(dead.process.returncode)
        worker.task = replace(task, resume=True, doomed=doomed)
        _send(worker, worker.task)

    def _fruitless(self, exit_code: int) -> ShardforgeError:
        self._log.seek(0)
        said = self._log.read().decode(errors="replace").strip().splitlines()
        why = f": {said[-1]}" if said else ""
        return ShardforgeError(
            f"worker processes keep ending for no item's fault (exit code {exit_code}){why}",
            todo="The same command goes on from here.",
        )

    def _progress(self) -> Progress:
        marks = [worker.marker.read() for worker in self._alive.values() if worker.task is not None]
        _, done, failed, read, written = (sum(column) for column in zip(*marks, strict=True)) if marks else [0] * 5
        return Progress(done, failed, read, written)

    @staticmethod
    def _end(worker: _Worker) -> None:
        worker.process.kill()
        worker.process.wait()
        for pipe in (worker.process.stdin, worker.process.stdout):
            # A broken pipe: the task that was being sent died with its worker.
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


def _send(worker: _Worker, task: ShardTask) -> None:
    assert worker.process.stdin is not None
    # A broken pipe: the worker is dead already; that is noticed next, and the task goes to its successor.
    with contextlib.suppress(BrokenPipeError):
        worker.process.stdin.write(json.dumps(task.to_plain()).encode() + b"\n")
        worker.process.stdin.flush()


def _cause(exit_code: int) -> Reason:
    """Why processes died on one item, by the exit code of the last."""
    if exit_code == -signal.SIGXCPU:
        return Reason.TIMEOUT
    # The kernel's answer to memory it cannot provide is SIGKILL; no decoder sends that to itself.
    if exit_code in (EXIT_OUT_OF_MEMORY, -signal.SIGKILL):
        return Reason.OUT_OF_MEMORY
    return Reason.DECODER_CRASH


def _environment() -> dict[str, str]:
    """One thread per worker, as shards are the unit of parallel work; and no allocator that reserves memory ahead,
    which would count against the limit."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **single, "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2", **KEPT_MEMORY}
