"""Reading a file once, from front to back, with the digests that are wanted on the way."""

from __future__ import annotations

import hashlib
import zlib
from typing import IO

CHUNK = 2**20
"""The most that is read at once, in bytes."""
TEXT = 32
"""How much of a payload that is passed over is kept, in bytes; longer than any 64-bit integer."""


class OnePass:
    """Reads a file forwards only; every byte enters the file's digest and the running crc32."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.position = 0
        self.crc32 = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the file."""
        data = self._file.read(count)
        self.digest.update(data)
        self.crc32 = zlib.crc32(data, self.crc32)
        self.position += len(data)
        return data

    def pass_over(self, count: int, digest: hashlib._Hash | None = None) -> bytes:
        """Reads ``count`` bytes, adding them to ``digest``, and returns the first :data:`TEXT` of them."""
        head = b""
        while count > 0 and (data := self.take(min(count, CHUNK))):
            if digest is not None:
                digest.update(data)
            head = head or data[:TEXT]
            count -= len(data)
        return head
