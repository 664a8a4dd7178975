"""Tar archives in a stream that can only be read forwards: packed or not, and several in a row."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Iterator
from typing import Protocol, cast

BLOCK = 512
_CHUNK = 2**20
_ZSTD = b"\x28\xb5\x2f\xfd"


class Readable(Protocol):
    """``read`` gives at most so many bytes, and none only at the end."""

    def read(self, size: int, /) -> bytes: ...


class Forwards:
    """What ``tarfile`` wants of a file, over a stream that cannot go back.

    Memory grows with the bytes that come, not with the sizes that headers promise.

    Attributes:
        last: what the last reading of at most a block gave.
        ended: whether the stream has come to its end.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream, self._at, self._kept = stream, 0, b""
        self.last, self.ended = b"", False

    def tell(self) -> int:
        return self._at

    def seek(self, position: int) -> None:
        """Passes over everything before ``position``."""
        while self._at < position and self.read(min(_CHUNK, position - self._at)):
            pass

    def read(self, size: int) -> bytes:
        """``size`` bytes, fewer at the end only."""
        parts, wanted = [self._kept[:size]], size - len(self._kept[:size])
        self._kept = self._kept[size:]
        while wanted > 0 and not self.ended:
            part = self._stream.read(min(_CHUNK, wanted))
            self.ended = not part
            parts.append(part)
            wanted -= len(part)
        data = b"".join(parts)
        self._at += len(data)
        if size <= BLOCK:
            self.last = data
        return data

    def keep(self, data: bytes) -> None:
        """``data``, which was read last, comes once more."""
        self._kept, self._at = data + self._kept, self._at - len(data)


class Archives:
    """The regular members of all archives of a stream.

    Behind the end of an archive (blocks of zeros) another one may begin, as ``cat a.tar b.tar`` makes it; anything
    else there is damage. ``tarfile`` would stop at the first end, or with ``ignore_zeros`` pass over damage as well.

    Attributes:
        lost: name of the member that is being read: after an error, of the one that broke off.
    """

    def __init__(self, stream: Forwards) -> None:
        self._stream = stream
        self.lost: str | None = None

    def __iter__(self) -> Iterator[tuple[str, bytes] | None]:
        """Name and payload of each member, and None at the end of every archive.

        Raises:
            tarfile.TarError: a member breaks off, a header is none, or the end of the archive is missing.
        """
        while True:
            yield from self._members()
            if self._stream.last != bytes(BLOCK):
                if len(self._stream.last) < BLOCK:
                    raise tarfile.ReadError("the stream ends without an end of archive")
                raise tarfile.ReadError(f"no tar header at byte {self._stream.tell() - BLOCK:,}")
            yield None
            if not self._another():
                return

    def _members(self) -> Iterator[tuple[str, bytes]]:
        tar = tarfile.TarFile(fileobj=self._stream)  # type: ignore[arg-type]
        while (info := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]
            # A sparse file of few bytes may unfold to any size.
            if not info.isreg() or info.sparse is not None:
                continue
            self.lost = info.name
            data = self._stream.read(info.size) if info.size > 0 else b""
            if len(data) != info.size:
                raise tarfile.ReadError(f"{len(data):,} of the {info.size:,} bytes of {info.name!r} are there")
            self.lost = None
            yield info.name, data

    def _another(self) -> bool:
        """Passes over zeros; whether an archive begins behind them."""
        while block := self._stream.read(BLOCK):
            if block.count(0) == len(block):
                continue
            try:
                tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except (tarfile.HeaderError, ValueError):
                what = "neither padding nor another archive follows the end of the archive"
                raise tarfile.ReadError(what) from None
            self._stream.keep(block)
            return True
        return False


def unpacked(stream: Forwards) -> Forwards:
    """The stream without its compression: gzip, bzip2 or xz, each of any number of parts one after the other.

    Raises:
        tarfile.CompressionError: it is compressed in another way that is known.
    """
    head = stream.read(len(_ZSTD) + 2)
    stream.keep(head)
    if head.startswith(b"\x1f\x8b"):
        return Forwards(gzip.GzipFile(fileobj=stream, mode="rb"))
    if head.startswith(b"BZh"):
        return Forwards(cast(Readable, bz2.BZ2File(stream)))  # type: ignore[call-overload]
    if head.startswith(b"\xfd7zXZ\0"):
        return Forwards(cast(Readable, lzma.LZMAFile(stream)))  # type: ignore[arg-type]
    if head.startswith(_ZSTD):
        raise tarfile.CompressionError("compressed with zstd, which is not unpacked here")
    return stream
