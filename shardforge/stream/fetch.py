"""Payload bytes from local shards, memory-mapped."""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from shardforge.errors import DamagedError, StorageError
from shardforge.machine import inspect_machine

OPEN_SHARDS = 1024
"""How many shards one process keeps mapped at most. Each costs a file descriptor, of which a split takes no more than
a quarter."""


class ShardFiles:
    """The tars of one split. Maps them when first needed and keeps the :data:`OPEN_SHARDS` used last.

    Pickles without its maps. Maps made before a fork stay valid in the child: they are read-only and have no file
    position to share. Threads may share one object.

    Args:
        paths: of the tars, by shard number.
        sizes: their lengths in bytes according to the manifest.
    """

    def __init__(self, paths: Sequence[Path], sizes: Sequence[int]) -> None:
        self._paths, self._sizes = tuple(paths), tuple(sizes)
        self._maps: OrderedDict[int, memoryview] = OrderedDict()
        allowed = inspect_machine().open_files
        self._limit = OPEN_SHARDS if allowed is None else min(OPEN_SHARDS, max(1, allowed // 4))
        self._lock, self._owner = threading.Lock(), os.getpid()

    def __getstate__(self) -> tuple[tuple[Path, ...], tuple[int, ...]]:
        return self._paths, self._sizes

    def __setstate__(self, state: tuple[tuple[Path, ...], tuple[int, ...]]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def view(self, shard: int, offset: int, size: int) -> memoryview:
        """A read-only view of ``size`` bytes of a shard from ``offset`` on; valid for as long as it is held.

        Raises:
            StorageError: the shard is missing or cannot be read.
            DamagedError: it has not the length that the manifest says, or the extent lies outside.
        """
        if not 0 <= shard < len(self._paths):
            raise DamagedError(f"the index names shard {shard} of {len(self._paths)}", where=self._paths[0].parent)
        content = self._maps.get(shard) if len(self._paths) <= self._limit else None
        if content is None:
            content = self._mapped(shard)
        if offset < 0 or size < 0 or offset + size > len(content):
            raise DamagedError(f"the index names bytes {offset} … {offset + size} outside", where=self._paths[shard])
        return content[offset : offset + size]

    def shortened(self) -> list[Path]:
        """The shards that are there, but shorter than the manifest says: to read a map of one ends the process."""
        found = []
        for path, size in zip(self._paths, self._sizes, strict=True):
            with contextlib.suppress(OSError):
                if path.stat().st_size < size:
                    found.append(path)
        return found

    def _mapped(self, shard: int) -> memoryview:
        """The map of a shard, made if need be; where not all fit, the one that was longest out of use goes."""
        if self._owner != os.getpid():
            # A thread of the parent's may have held the lock when this process was forked.
            self._lock, self._owner = threading.Lock(), os.getpid()
        with self._lock:
            content = self._maps.get(shard)
            if content is None:
                content = self._map(shard)
            else:
                self._maps.move_to_end(shard)
        return content

    def _map(self, shard: int) -> memoryview:
        path = self._paths[shard]
        try:
            with open(path, "rb") as file:
                # A map of a file that is too short would end the process (SIGBUS) instead of raising.
                found = file.seek(0, 2)
                if found != self._sizes[shard]:
                    raise DamagedError(f"{found} bytes long, not {self._sizes[shard]}", where=path)
                content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except OSError as error:
            raise StorageError(f"cannot be read ({error.strerror})", where=path) from None
        self._maps[shard] = content
        if len(self._maps) > self._limit:
            # Unmapped when the last view of it goes.
            self._maps.popitem(last=False)
        return content
