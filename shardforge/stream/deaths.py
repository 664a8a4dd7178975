"""What is said when worker processes died: how, of what perhaps, and what to do."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shardforge.errors import ShardforgeError
from shardforge.stream.fetch import ShardFiles

_AGAIN = "The loader can be iterated again."
_RENAME = "Shards that are being read must not be written into or truncated; rename a new file to their place."


@dataclass(frozen=True)
class Death:
    """A process that ended though nobody told it to. ``code``: its exit code; negative: the signal that ended it."""

    pid: int
    code: int

    def __str__(self) -> str:
        return f"pid {self.pid}: {f'signal {-self.code}' if self.code < 0 else f'exit code {self.code}'}"


def explain_deaths(dead: Sequence[Death], files: ShardFiles, root: Path) -> ShardforgeError:
    """The error to raise.

    Args:
        files: the shards that they read, in the dataset ``root``.
    """
    what = f"a worker process died ({', '.join(map(str, dead))})"
    codes = {death.code for death in dead}
    if -signal.SIGBUS in codes:
        verify = f"`shardforge inspect {root} --verify` checks all shards."
        shortened = files.shortened()
        if shortened:
            return ShardforgeError(
                f"{what}: the shard became shorter while it was being read",
                where=shortened[0],
                todo=f"{verify} {_RENAME} {_AGAIN}",
            )
        return ShardforgeError(
            what,
            todo=f"Signal {signal.SIGBUS:d} means that a shard became shorter while it was being read, if only for a"
            f" moment, or that shared memory (/dev/shm) is full. {verify} {_RENAME} {_AGAIN}",
        )
    if -signal.SIGKILL in codes:
        return ShardforgeError(
            what,
            todo=f"Signal {signal.SIGKILL:d} often means that memory ran out (`dmesg` tells): fewer workers, a"
            f" smaller prefetch or batch_size need less. {_AGAIN}",
        )
    return ShardforgeError(what, todo=_AGAIN)
