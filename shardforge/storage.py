"""What a build asks of the place it writes to: durable files, published by rename, and one writer at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

from shardforge.errors import StorageError

_PATIENCE = 10.0
"""Seconds to wait for the workers of a killed build to let go of its lock."""


def sync_folder(folder: Path) -> None:
    """Brings a folder's entries to the disk, so that a rename survives a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Brings a file's content to the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def write_durably(path: Path, data: bytes) -> None:
    """Writes a whole file so that a reader sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def explain(error: OSError, where: object) -> StorageError:
    """An operating system's error as one a user can act on."""
    place = error.filename if error.filename is not None else where
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            "the disk is full", where=place, todo="Free space and run the same command again: it resumes."
        )
    return StorageError(f"cannot be read or written ({error.strerror or error})", where=place)


class FolderLock:
    """Holds a folder for one build, by a lock on the folder itself: no file is left behind, none can be removed.

    Worker processes inherit it, so the folder is free only when all of them are gone.

    Attributes:
        descriptor: the file descriptor that worker processes inherit.
        supported: whether the file system has such locks at all (some network file systems do not).

    Raises:
        StorageError: another build holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            folder.mkdir(parents=True, exist_ok=True)
            self.descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.supported = True
            except BlockingIOError:
                os.close(self.descriptor)
                if time.monotonic() > deadline:
                    raise StorageError("another build is running here", where=folder) from None
                time.sleep(0.05)
                continue
            except OSError as error:
                if error.errno not in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
                    os.close(self.descriptor)
                    raise
                self.supported = False
            if self._is(folder):
                return
            # Whoever held it before has removed the folder; what is there now is another one.
            os.close(self.descriptor)

    def _is(self, folder: Path) -> bool:
        try:
            return os.path.samestat(folder.stat(), os.fstat(self.descriptor))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        os.close(self.descriptor)
