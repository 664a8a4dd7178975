"""The one family of errors a user can cause, each with its exit code, and the failure of a single sample."""

from __future__ import annotations

from shardforge.shards.catalogue import Reason


class ShardforgeError(Exception):
    """A problem somebody can act on: what happened, where, and what to do.

    Attributes:
        exit_code: the command line's exit code for this error.
    """

    exit_code = 3

    def __init__(self, what: str, *, where: object = None, todo: str | None = None) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.todo = todo
        super().__init__(what, self.where, todo)

    def __str__(self) -> str:
        text = self.what if self.where is None else f"{self.where}: {self.what}"
        return text if self.todo is None else f"{text}. {self.todo}"

    def __reduce__(self) -> tuple[object, ...]:
        # Notes, which say where in a worker process it was, travel as well.
        notes = {"__notes__": list(self.__notes__)} if hasattr(self, "__notes__") else None
        return _rebuild, (type(self), self.what, self.where, self.todo), notes


def _rebuild(kind: type[ShardforgeError], what: str, where: str | None, todo: str | None) -> ShardforgeError:
    return kind(what, where=where, todo=todo)


class UsageError(ShardforgeError):
    """The request itself is wrong: an option, a recipe, a combination."""

    exit_code = 2


class StorageError(ShardforgeError):
    """Something cannot be read or written."""

    exit_code = 3


class DamagedError(ShardforgeError):
    """A dataset on disk is not what its manifest says."""

    exit_code = 1


class TooManyFailuresError(ShardforgeError):
    """A build stopped at ``--max-errors``; the same command resumes it."""

    exit_code = 4


class SampleError(Exception):
    """One item cannot become a sample. Becomes a row, never stops a build.

    Args:
        reason: the catalogue entry that goes into the row.
        detail: free text for the log only (it may carry paths or addresses).
    """

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
