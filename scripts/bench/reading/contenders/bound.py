"""The bound: two plain threads decode, crop and resize into batches, and do nothing else.

The bytes lie in memory, crops and mirrorings were drawn before, batches are made in memory that is used again and
handed over in the order in which each thread makes them.
"""

from __future__ import annotations

import itertools
import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg

from scripts.bench.reading.work import BATCH, CROP, SQUARE, label_of, random_box

_AHEAD = 2
"""Finished batches that each thread keeps waiting."""


def write(pictures: Path, out: Path, payload: str) -> None:
    (out / "source").symlink_to(pictures)


@contextmanager
def _reader(data: Path, workers: int, decode: Callable[[bytes], Any], pattern: str) -> Iterator[Any]:
    cv2.setNumThreads(1)
    draw = random.Random(0)
    paths = sorted((data / "source").glob(pattern))
    stored = [path.read_bytes() for path in paths]
    shapes = [decode(payload).shape[:2] for payload in stored]
    boxes = [random_box(height, width, draw) for height, width in shapes]
    mirrored = [draw.random() < 0.5 for _ in stored]
    labels = np.array([label_of(path) for path in paths])
    made: list[queue.Queue[Any]] = [queue.Queue(_AHEAD) for _ in range(workers)]
    over = threading.Event()

    def make(number: int) -> None:
        shuffled = random.Random(number)
        memory = [np.empty((BATCH, CROP, CROP, 3), np.uint8) for _ in range(_AHEAD + 2)]
        for batch in itertools.cycle(memory):
            chosen = shuffled.choices(range(len(stored)), k=BATCH)
            for out, i in zip(batch, chosen, strict=True):
                top, left, height, width = boxes[i]
                pixels = decode(stored[i])
                cv2.resize(pixels[top : top + height, left : left + width], (CROP, CROP), dst=out)
                if mirrored[i]:
                    cv2.flip(out, 1, dst=out)
            while not over.is_set():
                try:
                    made[number].put((batch, labels[chosen]), timeout=0.1)
                    break
                except queue.Full:
                    continue
            if over.is_set():
                return

    threads = [threading.Thread(target=make, args=(number,)) for number in range(workers)]
    for thread in threads:
        thread.start()
    try:
        yield lambda: (made[number].get() for number in itertools.cycle(range(workers)))
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _array(payload: bytes) -> Any:
    return np.frombuffer(payload, np.uint8, offset=len(payload) - SQUARE * SQUARE * 3).reshape(SQUARE, SQUARE, 3)


READERS = {
    "bound": partial(_reader, decode=simplejpeg.decode_jpeg, pattern="*.jpg"),
    "bound_npy": partial(_reader, decode=_array, pattern="*.npy"),
}
