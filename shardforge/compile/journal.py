"""The journal of a shard in the making: one line per finished item, so that a crash costs the item and no other.

Beside ``SHARD.tar`` in the staging folder lie ``SHARD.rows`` (a JSON line per item, with the length of the tar after
it) and ``SHARD.hist`` (its pixel counts). An item's tar bytes come first, then its counts, then its line: what has a
line is whole. The files serve crashes of worker processes; after a crash of the machine, shards start again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from shardforge.shards.catalogue import Flag, Reason, Status
from shardforge.shards.metadata import Outcome
from shardforge.shards.statistics import Histogram, width
from shardforge.shards.tar import Extent

_ROWS = 256
"""Histograms summed at a time when a shard is finished."""


class Journal:
    """Appends to, and reads back, the journal of one shard.

    Args:
        folder: the staging folder.
        shard: the shard's name.
        channels, depth: of the images.
        keep: go on with what is there; otherwise start anew.
    """

    def __init__(self, folder: Path, shard: str, channels: int, *, depth: int = 8, keep: bool) -> None:
        self._rows_path, self._hist_path = folder / f"{shard}.rows", folder / f"{shard}.hist"
        self._shape = (channels, width(depth))
        self._record = channels * width(depth) * np.dtype(np.uint32).itemsize
        self.tar_size = 0
        self._outcomes: list[Outcome] = []
        if keep and self._rows_path.exists():
            whole = 0
            for line in self._lines():
                content = json.loads(line)
                self.tar_size, whole = content["tar_size"], whole + len(line)
                self._outcomes.append(_unpack(content["outcome"]))
            with open(self._rows_path, "r+b") as file:
                file.truncate(whole)
            with open(self._hist_path, "r+b") as file:
                file.truncate(self.count * self._record)
        else:
            self._rows_path.write_bytes(b"")
            self._hist_path.write_bytes(b"")
        self._rows: IO[bytes] = open(self._rows_path, "ab", buffering=0)
        self._hist: IO[bytes] = open(self._hist_path, "ab", buffering=0)

    def append(self, outcome: Outcome, histogram: Histogram | None, tar_size: int) -> None:
        """Records a finished item; ``tar_size`` is the length of the tar after it."""
        counts = np.zeros(self._shape, np.uint32) if histogram is None else histogram.astype(np.uint32)
        self._write(self._hist, counts.tobytes())
        self._write(self._rows, json.dumps({"tar_size": tar_size, "outcome": _pack(outcome)}).encode() + b"\n")
        self.tar_size = tar_size
        self._outcomes.append(outcome)

    @property
    def count(self) -> int:
        """Recorded items."""
        return len(self._outcomes)

    @staticmethod
    def _write(file: IO[bytes], data: bytes) -> None:
        """An unbuffered write may be short when the disk fills up; going on then raises."""
        while data:
            data = data[file.write(data) :]

    def outcomes(self) -> list[Outcome]:
        """All recorded outcomes, in order."""
        return list(self._outcomes)

    def histogram(self) -> Histogram:
        """The sum of all recorded counts [channels, 256], or wider for 16 bits."""
        total = np.zeros(self._shape, np.int64)
        with open(self._hist_path, "rb") as file:
            while block := file.read(_ROWS * self._record):
                total += np.frombuffer(block, np.uint32).reshape(-1, *self._shape).sum(0, dtype=np.int64)
        return total

    def close(self) -> None:
        self._rows.close()
        self._hist.close()

    def remove(self) -> None:
        """Closes and deletes the journal; the shard is published."""
        self.close()
        self._rows_path.unlink(missing_ok=True)
        self._hist_path.unlink(missing_ok=True)

    def _lines(self) -> Iterator[bytes]:
        with open(self._rows_path, "rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))


def _pack(outcome: Outcome) -> dict[str, object]:
    packed = {name: value for name, value in vars(outcome).items() if value is not None}
    packed["extents"] = {name: [extent.offset, extent.size] for name, extent in outcome.extents.items()}
    return packed


def _unpack(packed: dict[str, object]) -> Outcome:
    values: dict[str, object] = dict(packed)
    values["status"] = Status(str(values["status"]))
    if "reason" in values:
        values["reason"] = Reason(str(values["reason"]))
    values["flags"] = tuple(Flag(flag) for flag in values["flags"])  # type: ignore[attr-defined]
    values["extents"] = {name: Extent(*place) for name, place in values["extents"].items()}  # type: ignore[attr-defined]
    return Outcome(**values)  # type: ignore[arg-type]
