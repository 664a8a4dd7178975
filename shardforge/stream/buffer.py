"""A shuffle buffer: the classical way to mix what can only be read forwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def shuffled(items: Iterable[T], size: int, generator: np.random.Generator) -> Iterator[T]:
    """All items in another order: each takes the place of a random one of the ``size`` that wait to be given.

    Args:
        size: items held; 1 leaves the order as it is.
    """
    waiting: list[T] = []
    for item in items:
        if len(waiting) < size:
            waiting.append(item)
            continue
        place = int(generator.integers(size))
        out, waiting[place] = waiting[place], item
        yield out
    for place in generator.permutation(len(waiting)).tolist() if size > 1 else range(len(waiting)):
        yield waiting[place]
