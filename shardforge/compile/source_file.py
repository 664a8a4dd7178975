"""Reads the files that an item is made of."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from shardforge.codecs.file_bytes import Bytes, FileBytes
from shardforge.codecs.limits import Limits
from shardforge.compile.inputs import hash_file
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.zips import DAMAGED, Archives, is_member

_BLOCK = 1 << 20


def read_source(root: Path, path: bytes, planned_size: int, limits: Limits) -> bytes:
    """The bytes of a regular file below ``root``, never more than the limit.

    Raises:
        SampleError: ``missing_file``, ``unreadable``, ``changed`` or ``over_budget``.
    """
    descriptor, size = _open(root, path, limits)
    try:
        with open(descriptor, "rb") as file:
            # A buffer of the size asked for is allocated at once; one byte more tells whether the file has grown.
            data = file.read(size + 1)
    except OSError as error:
        raise SampleError(Reason.UNREADABLE, str(error)) from None
    _check_size(len(data), planned_size)
    return data


def open_source(root: Path, path: bytes, planned_size: int, limits: Limits) -> FileBytes:
    """The same, to be read when they are asked for.

    Raises:
        SampleError: as :func:`read_source`.
    """
    descriptor, _ = _open(root, path, limits)
    source = FileBytes(descriptor)
    _check_size(len(source), planned_size)
    return source


def _open(root: Path, path: bytes, limits: Limits) -> tuple[int, int]:
    """A descriptor of a regular file, and its size."""
    try:
        # O_NONBLOCK: a pipe that has taken the file's place must not hang the build.
        descriptor = os.open(root / os.fsdecode(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise SampleError(Reason.MISSING_FILE, str(error)) from None
    except OSError as error:
        raise SampleError(Reason.UNREADABLE, str(error)) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SampleError(Reason.CHANGED, "no longer a regular file")
        if status.st_size > limits.source_bytes:
            raise SampleError(Reason.OVER_BUDGET, f"{status.st_size} bytes")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status.st_size


def _check_size(found: int, planned: int) -> None:
    if found != planned:
        raise SampleError(Reason.CHANGED, f"{found} bytes where {planned} were planned")


def hash_source(root: Path, path: str) -> str | None:
    """The sha256 in hex of a file or a member of a zip archive; None when it cannot be read."""
    if not is_member(path):
        return hash_file(root / path)
    digest = hashlib.sha256()
    try:
        with Archives(root, keep=1) as archives, archives.open(path) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except (SampleError, *DAMAGED, OSError):
        return None
    return digest.hexdigest()


class SourceReader:
    """Reads files and members of zip archives, which it keeps open. Not for several threads.

    Args:
        root: the source folder.
    """

    def __init__(self, root: Path, limits: Limits) -> None:
        self._root, self._limits = root, limits
        self._archives = Archives(root)

    def read(self, path: bytes, planned_size: int) -> bytes:
        """See :func:`read_source`; of an archive that cannot be read also ``corrupt`` or ``unsupported``."""
        name = os.fsdecode(path)
        if not is_member(name):
            return read_source(self._root, path, planned_size, self._limits)
        data = self._archives.read(name, self._limits.source_bytes)
        _check_size(len(data), planned_size)
        return data

    def open(self, path: bytes, planned_size: int) -> Bytes:
        """The same; of a file only what is asked for is read."""
        if is_member(os.fsdecode(path)):
            return self.read(path, planned_size)
        return open_source(self._root, path, planned_size, self._limits)
