"""A file as pydicom reads it: never asked for more than it has, and only so often."""

from __future__ import annotations

import io
from typing import BinaryIO

MOST_WORK = 4_000_000
"""Reads that one header may take, items counting for more: an object of 10,000 frames, with 17 sequences each, takes
3.4 million. Without a bound a zip of 300 KB keeps a parser busy for many minutes."""

_ITEM = 5
_BLOCK = 1 << 16
# pydicom steps back over what it looked at to guess how an item is written.
_BEHIND = 64
_PER_STEP = 1 << 12


class TooMuchWork(Exception):
    """A header takes more reads than any real one."""


class BoundedSource(io.RawIOBase):
    """A seekable file that counts the work done on it.

    Short steps back cost nothing: a zip member that is asked to seek back unpacks itself from the start.

    Args:
        file: seekable.
        size: bytes that it has; a buffered file allocates whatever it is asked for, so it is asked for no more.

    Attributes:
        work: what has been done so far.
        exhausted: that was too much. pydicom turns what a read raises into errors of its own.
        unread: bytes that the last read asked for and did not get.
        broke_off: some read got a part of a tag or a length only.
    """

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._at, self._start, self._window = 0, 0, b""
        self.work, self.exhausted, self.unread, self.broke_off = 0, False, 0, False

    def read(self, count: int = -1) -> bytes:
        """Up to ``count`` bytes; all that are left if negative.

        Raises:
            TooMuchWork: instead of going on for ever.
        """
        left = max(0, self._size - self._at)
        wanted = left if count < 0 else min(count, left)
        self._spend(1 + wanted // _PER_STEP)
        begin = self._at - self._start
        if not 0 <= begin <= begin + wanted <= len(self._window):
            self._move(wanted)
            begin = self._at - self._start
        data = self._window[begin : begin + wanted]
        self._at += len(data)
        self.unread = max(0, count - len(data))
        # Between two elements pydicom asks for eight bytes and gets none.
        self.broke_off |= (0 < self.unread < 8 and count <= 8) or self.unread == count == 4
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes to ``offset``, counted from the start or, by ``whence``, from here."""
        # Of each item pydicom makes a dataset, and seeks once: that costs more than a read.
        self._spend(_ITEM)
        self._at = offset if whence == io.SEEK_SET else self._at + offset
        return self._at

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._at

    def _move(self, wanted: int) -> None:
        """Brings the next ``wanted`` bytes into the window."""
        end = self._start + len(self._window)
        keep = b""
        if self._window and self._start <= self._at <= end:
            keep = self._window[max(0, self._at - self._start - _BEHIND) :]
        else:
            if self._at < end:
                self._spend(self._at // _PER_STEP)
            self._file.seek(self._at)
            end = self._at
        # What is kept may hold the first of the wanted bytes.
        more = max(wanted - (end - self._at), min(_BLOCK, self._size - end), 0)
        self._window = keep + self._file.read(more)
        self._start = end - len(keep)

    def _spend(self, steps: int) -> None:
        self.work += steps
        if self.work > MOST_WORK:
            self.exhausted = True
            raise TooMuchWork
