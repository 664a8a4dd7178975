"""Look-up: the tables of a DICOM file, and tables made here so that a pixel costs one index instead of a formula."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import Lut


def entries_of(lut: Lut, values: NDArray[Any]) -> NDArray[np.uint16]:
    """The entries that values of any numeric type select (PS3.3 C.11.1.1.1): beyond the ends, the first and last.

    Fractions select the nearest entry, NaN the first.
    """
    last = len(lut.data) - 1
    place: NDArray[Any]
    if values.dtype.kind == "f":
        place = np.nan_to_num(np.rint(values.astype(np.float64)) - lut.first, nan=0.0)
    else:
        place = values.astype(np.int64) - lut.first
    return lut.data.take(np.clip(place, 0, last).astype(np.intp))


def identity_of(lut: Lut) -> Hashable:
    """What tells tables apart: equal for equal content."""
    return lut.first, lut.bits, lut.data.tobytes()


def whole_domain(low: int, high: int) -> NDArray[np.int64]:
    """All whole numbers from ``low`` (at most 0) to ``high``, in the order in which a table is indexed.

    0 stands first and negative numbers count from the end, as Python indexes: ``f(whole_domain(…))[v]`` is ``f(v)``.
    """
    return np.concatenate([np.arange(high + 1, dtype=np.int64), np.arange(low, 0, dtype=np.int64)])


class Tables:
    """Computed tables by what they were computed from; beyond ``limit`` the oldest goes. Not for several threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tables: dict[Hashable, NDArray[Any]] = {}

    def get(self, key: Hashable, build: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """The table under ``key``, built where it is new."""
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = build()
            if len(self._tables) > self._limit:
                del self._tables[next(iter(self._tables))]
        return table

    def __len__(self) -> int:
        return len(self._tables)
