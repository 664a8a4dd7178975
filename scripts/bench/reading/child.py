"""Runs one contender, in a process and an environment of its own: ``python -m scripts.bench.reading.child …``.

    write MODULE PAYLOAD PICTURES OUT [SHARD]
    read MODULE NAME DATA WORKERS SECONDS
    grow MODULE NAME DATA WORKERS EPOCHS
    resume DATA WORKERS

Prints one JSON line on standard output; whatever the contender prints goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from scripts.bench.reading.work import BATCH, CLASSES, CROP
from scripts.bench.usage import Usage, family_cpu_seconds, family_memory

WARMING = 1.5
"""Seconds after the first batch that are not counted yet."""
SETTLED = 5
"""Epochs after which memory is taken to have settled."""


def write(module: str, payload: str, pictures: str, out: str, *shard: str) -> dict[str, Any]:
    """Writes the pictures in the contender's format."""
    _contender(module).write(Path(pictures), Path(out), payload, *map(int, shard))
    return {}


def read(module: str, name: str, data: str, workers: str, seconds: str) -> dict[str, Any]:
    """Reads for so many seconds after the first batch and the time to warm up; with 0, the first batch only.

    Returns:
        ``first``: seconds from opening, imports left out, to the first batch; ``rate``: images per second;
        ``cpu``: processor seconds per 1 000 images; ``peak``: see :class:`Usage`.
    """
    reader = _contender(module).READERS[name]
    result: dict[str, Any] = {}
    with Usage() as usage:
        began = time.perf_counter()
        with reader(Path(data), int(workers)) as epoch:
            batches = _endless(epoch)
            images, labels = next(batches)
            result["first"] = time.perf_counter() - began
            _check(images, labels)
            del images, labels
            if float(seconds):
                result.update(_measured(batches, float(seconds)))
            batches.close()
    result["peak"] = usage.peak_all
    return result


def _measured(batches: Iterator[Any], seconds: float) -> dict[str, float]:
    warm = time.perf_counter() + WARMING
    while time.perf_counter() < warm:
        next(batches)
    count, spent, start = 0, family_cpu_seconds(), time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or not count:
        count += len(next(batches)[0])
    return {"rate": count / (now - start), "cpu": 1000 * (family_cpu_seconds() - spent) / count}


def grow(module: str, name: str, data: str, workers: str, epochs: str) -> dict[str, Any]:
    """By how many bytes all processes grow from epoch 5 to the last one."""
    reader = _contender(module).READERS[name]
    sizes = []
    with reader(Path(data), int(workers)) as epoch:
        for _ in range(int(epochs)):
            for _ in epoch():
                pass
            gc.collect()
            sizes.append(family_memory())
    return {"growth": sizes[-1] - sizes[min(SETTLED, len(sizes)) - 1]}


def resume(data: str, workers: str) -> dict[str, Any]:
    """Seconds from making a loader, loading a state of the middle of an epoch into it, to its next batch."""
    from shardforge import ShardLoader
    from shardforge.transforms import RandomResizedCrop

    def make() -> ShardLoader:
        return ShardLoader(data, batch_size=BATCH, transform=RandomResizedCrop(CROP), threads=int(workers))

    with make() as loader:
        for step, _ in enumerate(loader):
            if 2 * step >= len(loader):
                break
        state = loader.state_dict()
    began = time.perf_counter()
    with make() as loader:
        loader.load_state_dict(state)
        next(iter(loader))
        return {"resume": time.perf_counter() - began}


def _contender(module: str) -> Any:
    return importlib.import_module(f"scripts.bench.reading.contenders.{module}")


def _endless(epoch: Callable[[], Iterator[Any]]) -> Generator[Any, None, None]:
    while True:
        yield from epoch()


def _check(images: Any, labels: Any) -> None:
    """A batch is what everybody else's is."""
    import numpy as np

    pixels, classes = np.asarray(images), np.asarray(labels)
    if pixels.shape not in ((BATCH, CROP, CROP, 3), (BATCH, 3, CROP, CROP)) or pixels.dtype != np.uint8:
        raise ValueError(f"a batch of shape {pixels.shape} and type {pixels.dtype}")
    if not 20 < pixels.std() < 110:
        raise ValueError(f"no photographs: their pixels deviate by {pixels.std():.1f} levels")
    if len(classes) != BATCH or not 1 < len(set(classes.ravel().tolist())) <= CLASSES:
        raise ValueError("the labels are not those of the pictures")


def main(task: str, *arguments: str) -> None:
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    tasks: dict[str, Callable[..., dict[str, Any]]] = {"write": write, "read": read, "grow": grow, "resume": resume}
    result = tasks[task](*arguments)
    answer.write(json.dumps(result) + "\n")
    answer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
