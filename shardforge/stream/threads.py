"""Making batches in threads, ahead of the one that is asked for, and handing them over in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from shardforge.machine import inspect_machine
from shardforge.stream.batches import BatchJob, Content
from shardforge.stream.counts import whole

_PARTS_PER_THREAD = 2
_LEAST_ROWS = 4
_MOST = 32


def in_order(
    jobs: Iterator[BatchJob], pool: ThreadPoolExecutor, threads: int, ahead: int
) -> Generator[Content, None, None]:
    """The batches of ``jobs``, in their order.

    While the caller works with one, up to ``ahead`` others are made. When the generator is closed, or a batch raises,
    it waits for what has begun and forgets the rest: nothing is written any more after that.

    Raises:
        Whatever the making of a batch raises, when its turn has come.
    """
    waiting: deque[tuple[BatchJob, list[Future[None]]]] = deque()
    process = os.getpid()
    try:
        while True:
            while len(waiting) <= ahead and (job := next(jobs, None)) is not None:
                waiting.append((job, _submit(job, pool, threads)))
            # Nothing here may keep a batch alive once it is handed over: its memory is used again.
            job = None
            if not waiting:
                return
            # Waiting for one after the other would wake this thread as often, and each time it takes the interpreter
            # away from those at work.
            wait(waiting[0][1], return_when=FIRST_EXCEPTION)
            for share in waiting[0][1]:
                share.result()
            yield waiting.popleft()[0].content
    finally:
        # In a process forked meanwhile nothing runs, and nothing would ever end.
        if process == os.getpid():
            for job, _ in waiting:
                job.stop()
            wait([share for _, shares in waiting for share in shares if not share.cancel()])


def _submit(job: BatchJob, pool: ThreadPoolExecutor, threads: int) -> list[Future[None]]:
    """Has every thread work on the job until its rows are used up."""
    rows = max(_LEAST_ROWS, -(-job.size // (_PARTS_PER_THREAD * threads)))
    return [pool.submit(job.work, rows) for _ in range(min(threads, -(-job.size // rows)))]


def choose_threads(threads: int | None, workers: int) -> int:
    """How many threads make batches in each process: as given, or the processors that this process may use, shared
    with the other training processes of this machine (LOCAL_WORLD_SIZE, as torchrun sets it) and the workers.

    Raises:
        UsageError: the number makes no sense.
    """
    if threads is not None:
        return whole("threads", threads, least=1)
    machine = inspect_machine()
    processors = machine.cpus if machine.cpu_quota is None else min(machine.cpus, int(machine.cpu_quota))
    beside = os.environ.get("LOCAL_WORLD_SIZE", "1")
    ranks = int(beside) if beside.isdecimal() else 1
    return max(1, min(_MOST, processors // (max(1, ranks) * max(1, workers))))


def make_pool(threads: int) -> ThreadPoolExecutor:
    """Idle threads end with the pool, and with the process."""
    return ThreadPoolExecutor(threads, thread_name_prefix="shardforge")
