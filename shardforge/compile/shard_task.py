"""What an engine carries to a worker, and how a worker tells where it is; light, as the build itself loads it too."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from shardforge.shards.catalogue import Reason


@dataclass(frozen=True)
class ShardTask:
    """The whole description of a task; plain values, so that any engine can carry it anywhere.

    Attributes:
        staging: folder with the frozen plan, where the shard is made.
        batch: number of the plan's record batch.
        shard: the shard's name.
        source: the source folder.
        out: where to publish; None for a trial, which is made and thrown away.
        cpu_seconds: CPU time an item may take.
        resume: go on after the items that the shard's journal holds.
        doomed: position → reason, for items that killed their process twice.
        key_file: where the key lies that hides digests of source files, or None.
    """

    staging: str
    batch: int
    shard: str
    source: str
    out: str | None
    cpu_seconds: int
    resume: bool = False
    doomed: Mapping[int, Reason] | None = None
    key_file: str | None = None

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        doomed = {int(place): Reason(reason) for place, reason in (content["doomed"] or {}).items()}
        return cls(**{**content, "doomed": doomed})


class Marker:
    """A worker's note of what it is doing, in a small shared file that outlives the worker.

    Attributes (64-bit integers): ``position`` of the item in the works (−1: none), items ``done`` and ``failed`` in
    this task, bytes ``read`` and ``written``.
    """

    _LAYOUT = struct.Struct("<5q")

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(self._LAYOUT.pack(-1, 0, 0, 0, 0))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), self._LAYOUT.size)

    def write(self, position: int, done: int, failed: int, read: int, written: int) -> None:
        self._LAYOUT.pack_into(self._map, 0, position, done, failed, read, written)

    def read(self) -> tuple[int, int, int, int, int]:
        return self._LAYOUT.unpack_from(self._map)

    def clear(self) -> None:
        self.write(-1, 0, 0, 0, 0)

    def close(self) -> None:
        self._map.close()
