"""The bytes of a file of which only a part is wanted: they are read when they are asked for."""

from __future__ import annotations

import hashlib
import io
import os

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, and when content and inode changed last, in ns."""


_SMALL, _WINDOW = 512, 1 << 12
"""Small slices mostly follow each other: so much is read at once for them."""


class FileBytes:
    """Takes the place of a file's ``bytes``: it has a length and slices. Not for several threads.

    Args:
        descriptor: of a regular file; closed when this object goes.
    """

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        self.identity = self._identify()
        self._size = self.identity[2]
        self._at, self._window = 0, b""

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice) -> bytes:
        """A slice of step 1.

        Raises:
            SampleError: ``unreadable``; ``changed`` if the file has become shorter.
        """
        start, end, _ = part.indices(self._size)
        end = max(start, end)
        if end - start > _SMALL:
            return self._read(start, end)
        if not self._at <= start <= end <= self._at + len(self._window):
            self._at, self._window = start, self._read(start, min(self._size, start + _WINDOW))
        return self._window[start - self._at : end - self._at]

    def _read(self, start: int, end: int) -> bytes:
        parts = []
        while start < end:
            try:
                some = os.pread(self._file.fileno(), end - start, start)
            except OSError as error:
                raise SampleError(Reason.UNREADABLE, str(error)) from None
            if not some:
                raise SampleError(Reason.CHANGED, f"shorter than the {self._size} bytes that it had")
            parts.append(some)
            start += len(some)
        return b"".join(parts) if len(parts) != 1 else parts[0]

    @property
    def unchanged(self) -> bool:
        """Whether nobody has written into the file since it was opened."""
        return self._identify() == self.identity

    def file(self) -> io.BufferedReader:
        """The file at its start, for whoever wants to read and seek. Made anew, it moves those made before."""
        opened = os.fdopen(os.dup(self._file.fileno()), "rb")
        opened.seek(0)
        return opened

    def sha256(self) -> str:
        """Of all of it, in hex.

        Raises:
            SampleError: ``unreadable``.
        """
        try:
            with self.file() as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise SampleError(Reason.UNREADABLE, str(error)) from None

    def _identify(self) -> Identity:
        status = os.fstat(self._file.fileno())
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


Bytes = bytes | FileBytes


def view(data: Bytes, start: int, end: int) -> memoryview:
    """Some bytes, without a copy where they are in memory."""
    return memoryview(data[start:end]) if isinstance(data, FileBytes) else memoryview(data)[start:end]
