"""Samples from tars that can only be read forwards. webdataset opens the URLs; its stages after that are not used.

They end without a word at a header that is damaged and behind the first of several archives, and take a command that
fails for one that ends early, sooner or later as the processes happen to run.
"""

from __future__ import annotations

import gzip
import lzma
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from webdataset.gopen import Pipe, gopen
from webdataset.tariterators import base_plus_ext

from shardforge.errors import DamagedError, ShardforgeError, StorageError
from shardforge.stream.archives import Archives, Forwards, unpacked

RawSample = dict[str, Any]
"""``__key__``, ``__url__``, and suffix (lower case) → bytes; ``__cut__`` in the last sample before damage, which may
lack members."""

OnProblem = Callable[[ShardforgeError], None]
"""Takes what is wrong with a shard; raises it, or returns to go on with the next shard."""

_DAMAGE = (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError)
_META = re.compile(r"__[^/]*__(?:$|/)")


def read_samples(urls: Iterable[str], on_problem: OnProblem) -> Iterator[RawSample]:
    """The samples of some shards, one after the other; members of a sample have to stand together.

    Args:
        urls: paths, or whatever ``webdataset.gopen`` opens. ``pipe:`` runs a command, other schemes a helper program.
        on_problem: is told once for each shard that cannot be opened, ends early, is no tar, or whose command fails,
            when everything that came before has been given; and for every member that a sample has twice.
    """
    for url in urls:
        yield from _Shard(url, on_problem).samples()


class _Shard:
    """One stream: from being opened to the exit status of its command."""

    def __init__(self, url: str, on_problem: OnProblem) -> None:
        self._url, self._on_problem = url, on_problem
        self._sample: RawSample | None = None
        self._always: set[str] | None = None

    def samples(self) -> Iterator[RawSample]:
        try:
            opened = gopen(self._url)
        except Exception as error:
            self._on_problem(self._explained(error))
            return
        # Pipe.read would raise as soon as the command has failed, with much of what it wrote still to be read.
        stream = Forwards(opened.stream if isinstance(opened, Pipe) else opened)
        try:
            yield from self._all(opened, stream)
        finally:
            _abandon(opened)

    def _all(self, opened: Any, stream: Forwards) -> Iterator[RawSample]:
        archives: Archives | None = None
        try:
            archives = Archives(unpacked(stream))
            for member in archives:
                done = self._added(member)
                if done is not None:
                    yield done
        except Exception as error:
            if isinstance(error, ShardforgeError):
                raise
            last = self._cut(None if archives is None else archives.lost)
            if last is not None:
                yield last
            failed = _failure(opened) if stream.ended else None
            self._on_problem(self._explained(error) if failed is None else self._failed(failed))
            return
        failed = _failure(opened)
        if failed is not None:
            self._on_problem(self._failed(failed))

    def _added(self, member: tuple[str, bytes] | None) -> RawSample | None:
        """Takes the next member, or the end of an archive; returns the sample that is complete by that."""
        key, suffix = (None, "") if member is None else _parts(member[0])
        if member is not None and (key is None or _META.match(member[0]) or suffix.startswith("__")):
            return None
        done = None
        if self._sample is not None and key != self._sample["__key__"]:
            done, self._sample = self._sample, None
            self._always = done.keys() & (done.keys() if self._always is None else self._always)
        if member is not None:
            if self._sample is None:
                self._sample = {"__key__": key, "__url__": self._url}
            if suffix in self._sample:
                self._on_problem(DamagedError(f"a sample has {member[0]!r} twice; the first stays", where=self._url))
            else:
                self._sample[suffix] = member[1]
        return done

    def _cut(self, lost: str | None) -> RawSample | None:
        """The last sample before damage, if it has every member that all before it have and lost none."""
        last = self._sample
        if last is None or (lost is not None and _parts(lost)[0] == last["__key__"]):
            return None
        return {**last, "__cut__": True} if self._always is None or self._always <= last.keys() else None

    def _failed(self, how: str) -> StorageError:
        return StorageError(f"the command that reads it failed ({how})", where=self._url)

    def _explained(self, error: Exception) -> ShardforgeError:
        if isinstance(error, tarfile.CompressionError):
            todo = 'Unpack it on the way: "pipe:zstd -dc FILE".'
            return StorageError(str(error), where=self._url, todo=todo)
        if isinstance(error, _DAMAGE):
            return DamagedError(f"no whole tar ({error})", where=self._url)
        helped = isinstance(error, FileNotFoundError) and not self._url.startswith("file:")
        if helped and error.filename not in (None, self._url):  # type: ignore[attr-defined]
            return StorageError(f"{error.filename!r}, which opens it, is not installed", where=self._url)  # type: ignore[attr-defined]
        if isinstance(error, OSError) and error.errno is not None:
            return StorageError(f"cannot be read ({error.strerror or error})", where=self._url)
        return StorageError(f"cannot be read ({error})", where=self._url)


def _parts(name: str) -> tuple[str | None, str]:
    key, suffix = base_plus_ext(name)
    return key, (suffix or "").lower()


def _failure(opened: Any) -> str | None:
    """How the command behind a stream that has come to its end failed, or None."""
    try:
        opened.close()
    except OSError as error:
        process = getattr(opened, "proc", None)
        return str(error) if process is None else f"exit status {process.returncode}"
    return None


def _abandon(opened: Any) -> None:
    """Closes whatever is still open, without waiting for a command to come to its own end."""
    process = getattr(opened, "proc", None)
    if process is not None and process.poll() is None:
        process.terminate()
    try:
        opened.close()
    except OSError:
        return
