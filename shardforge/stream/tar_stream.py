"""Samples from tars that can only be read forwards, by webdataset's stages: opening URLs, expanding tars, grouping.

None of its decoders is used: payloads stay bytes. What its stages let pass in silence is looked for here: a stream
that ends between two members, and a command that fails after it has given something.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from webdataset.tariterators import group_by_keys, tar_file_expander, url_opener

from shardforge.errors import DamagedError, ShardforgeError, StorageError

RawSample = dict[str, Any]
"""``__key__``, ``__url__``, and suffix (lower case) → bytes."""

OnProblem = Callable[[ShardforgeError], None]
"""Takes what is wrong with a shard; raises it, or returns to go on with the next shard."""

_CHUNK = 2**20
_BLOCK = 512
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")


def read_samples(urls: Iterable[str], on_problem: OnProblem) -> Iterator[RawSample]:
    """The samples of some shards, one after the other; members of a sample have to stand together.

    Args:
        urls: paths, or whatever ``webdataset.gopen`` opens. ``pipe:`` runs a command, other schemes a helper program.
        on_problem: is told once for each shard that cannot be opened, ends early or is no tar.
    """
    reading = _Reading(on_problem)
    opened = reading.watched(url_opener(reading.named(urls), handler=reading.handle))
    files = reading.parted(tar_file_expander(opened, handler=reading.handle))
    yield from group_by_keys(files, handler=reading.handle_twice)


class _Reading:
    """What the stages share: which shard is being read, and whether something is wrong with it."""

    def __init__(self, on_problem: OnProblem) -> None:
        self._on_problem = on_problem
        self._url = ""
        self._stream: _Watched | None = None
        self._damaged = self._cut = False

    def named(self, urls: Iterable[str]) -> Iterator[dict[str, Any]]:
        for url in urls:
            self._url, self._stream, self._damaged = url, None, False
            yield {"url": url}

    def handle(self, error: Exception) -> bool:
        """An error inside one of webdataset's stages; True lets them go on."""
        if isinstance(error, ShardforgeError):
            raise error
        if not self._damaged:
            self._damaged = self._cut = True
            self._on_problem(self._explained(error))
        return True

    def handle_twice(self, error: Exception) -> bool:
        """A sample has two members of one suffix; the first stays."""
        if isinstance(error, ShardforgeError):
            raise error
        self._on_problem(DamagedError(str(error.args[0]).partition(" {")[0], where=self._url))
        return True

    def watched(self, sources: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Sees every shard off when the next one is asked for: to its end, and with its command's exit status."""
        for source in sources:
            stream = self._stream = _Watched(source["stream"])
            try:
                yield {**source, "stream": stream}
                if not self._damaged:
                    stream.finish()
            except (OSError, EOFError) as error:
                self.handle(error)
            finally:
                stream.abandon()

    def parted(self, files: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Marks the end of a shard also where it broke, so that no sample is made from the members of two."""
        for file in files:
            if self._cut:
                self._cut = False
                yield {}
            yield file

    def _explained(self, error: Exception) -> ShardforgeError:
        failed = None if self._stream is None else self._stream.failure()
        if failed is not None:
            return StorageError(f"the command that reads it failed ({failed})", where=self._url)
        if isinstance(error, FileNotFoundError) and error.filename is not None and error.filename != self._url:
            return StorageError(f"{error.filename!r}, which opens it, is not installed", where=self._url)
        if isinstance(error, OSError) and error.errno is not None:
            return StorageError(f"cannot be read ({error.strerror or error})", where=self._url)
        first = str(error.args[0] if error.args else error).partition(" @ ")[0]
        if isinstance(error, tarfile.TarError | EOFError | _CutError):
            return DamagedError(f"no whole tar ({first})", where=self._url)
        return StorageError(f"cannot be read ({first})", where=self._url)


class _CutError(OSError):
    """The stream ends before its archive does."""


class _Watched:
    """A stream that remembers how it began and what it gave last."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = self._tail = b""

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._head = self._head or data[:8]
        self._tail = data[-_BLOCK:] if len(data) >= _BLOCK else (self._tail + data)[-_BLOCK:]
        return data

    def finish(self) -> None:
        """Reads what is left (a command may fail as late as that) and closes.

        Raises:
            OSError: the end is not that of an archive, or the command failed.
        """
        while self.read(_CHUNK):
            pass
        self._stream.close()
        if self._tail != bytes(_BLOCK) and not self._head.startswith(_PACKED):
            raise _CutError("the stream ends without an end of archive")

    def failure(self) -> str | None:
        """How the command behind the stream failed, or None; ends the stream."""
        process = getattr(self._stream, "proc", None)
        if process is None:
            return None
        try:
            self._stream.close()
        except OSError:
            return f"exit status {process.returncode}"
        return None

    def abandon(self) -> None:
        """Closes whatever is still open, without waiting for a command to come to its own end."""
        process = getattr(self._stream, "proc", None)
        if process is not None and process.poll() is None:
            process.terminate()
        try:
            self._stream.close()
        except OSError:
            return
