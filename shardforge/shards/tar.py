"""Shards as tar files: plain USTAR with fixed metadata, written once and in order.

The usual writer (``tarfile`` with its default PAX format) adds up to 1.5 KB of headers to a member and takes times
and owners from the machine; here a member costs one 512-byte header and its bytes depend on nothing but its content.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

BLOCK = 512
END_OF_ARCHIVE = bytes(2 * BLOCK)
MAX_NAME = 100
"""Longest member name that fits USTAR's name field without a prefix."""
MAX_MEMBER = 8 * 2**30 - 1
"""Largest payload whose size fits USTAR's eleven octal digits."""

_KEY = re.compile(r"(?!__)[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*")
_SIZE = slice(124, 135)
_REST = (b"0" + bytes(100) + b"ustar\x0000" + bytes(32 + 32)).ljust(512 - 156, b"\0")
"""A header behind its checksum: a regular file that is no link, without names of owners."""
_REST_SUM = sum(_REST)
_FIELD = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


@dataclass(frozen=True)
class Extent:
    """Where a payload lies in its shard.

    Attributes:
        offset: first byte of the payload (after its header), in bytes from the start of the tar.
        size: length of the payload in bytes.
    """

    offset: int
    size: int


@dataclass(frozen=True)
class WrittenSample:
    """What writing one sample came to.

    Attributes:
        extents: field → place of its payload.
        start, end: bytes of the shard that belong to this sample, headers and padding included.
        crc32: checksum of exactly these bytes, so that any flipped bit can be blamed on its sample.
    """

    extents: dict[str, Extent]
    start: int
    end: int
    crc32: int


@dataclass(frozen=True)
class TarMember:
    """One member met while walking a shard; ``offset`` is where its payload starts."""

    name: str
    offset: int
    size: int

    @property
    def key(self) -> str:
        return split_name(self.name)[0]

    @property
    def field(self) -> str:
        return split_name(self.name)[1]

    @property
    def end(self) -> int:
        """Where the next header starts: after the payload and its padding."""
        return self.offset + self.size + -self.size % BLOCK


class TarDamage(Exception):
    """The bytes at ``offset`` are not what a shard may have there."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(f"byte {offset}: {what}")
        self.offset = offset
        self.what = what


def is_key(text: str) -> bool:
    """Whether ``text`` may be a key: ASCII letters, digits, ``_``, ``-`` and ``/``, not starting with ``__``."""
    return _KEY.fullmatch(text) is not None


def is_field(text: str) -> bool:
    """Whether ``text`` may be a field: lower case, with dots allowed inside (``mask.png``)."""
    return _FIELD.fullmatch(text) is not None


def split_name(name: str) -> tuple[str, str]:
    """``KEY.FIELD`` → (key, field): the key ends at the first dot of the base name, as in WebDataset."""
    folder, slash, base = name.rpartition("/")
    stem, _, field = base.partition(".")
    return folder + slash + stem, field


def header(name: str, size: int) -> bytes:
    """The 512-byte USTAR header of a member (POSIX.1-1988): mode 0644, owner 0:0 without names, time 0.

    Put together here: a shard has two or more for each sample, and ``tarfile`` takes ten times as long.

    Raises:
        ValueError: a name that is not ASCII or longer than 100 bytes, a size that does not fit.
    """
    text = name.encode("ascii")
    if len(text) > MAX_NAME or not 0 <= size <= MAX_MEMBER:
        raise ValueError(f"illegal member {name!r} of {size} bytes")
    start = b"%b0000644\x000000000\x000000000\x00%011o\x0000000000000\x00" % (text.ljust(MAX_NAME, b"\0"), size)
    # The sum of all bytes, those of the checksum itself taken as blanks.
    checksum = sum(start) + 8 * 0x20 + _REST_SUM
    return b"%b%06o\0 %b" % (start, checksum, _REST)


class TarWriter:
    """Appends samples to a shard.

    Args:
        path: the file to write.
        keep: continue an interrupted file: its first ``keep`` bytes are whole samples, the rest is cut off.
        crc32: as :func:`zlib.crc32`, for a faster one where it is loaded anyway.
    """

    def __init__(self, path: Path, *, keep: int = 0, crc32: Callable[[bytes, int], int] = zlib.crc32) -> None:
        self._crc32 = crc32
        self._file: IO[bytes] = open(path, "r+b" if keep else "wb")
        self._sha256 = hashlib.sha256()
        if keep:
            left = keep
            while left:
                block = self._file.read(min(left, 2**20))
                if not block:
                    raise TarDamage(keep - left, "the interrupted shard is shorter than its journal says")
                self._sha256.update(block)
                left -= len(block)
            self._file.seek(keep)
            self._file.truncate()
        self.size = keep

    def add(self, key: str, fields: Mapping[str, bytes]) -> WrittenSample:
        """Appends one sample, its fields in sorted order, and hands it to the operating system.

        Raises:
            ValueError: an illegal key or field, a name over 100 bytes, a payload over 8 GiB.
            OSError: the disk is full, for one.
        """
        if not is_key(key):
            raise ValueError(f"illegal key {key!r}")
        start, crc, extents, chunks = self.size, 0, {}, []
        for field in sorted(fields):
            name, payload = f"{key}.{field}", fields[field]
            if not is_field(field) or len(name) > MAX_NAME or len(payload) > MAX_MEMBER:
                raise ValueError(f"illegal member {name!r} of {len(payload)} bytes")
            chunks += [header(name, len(payload)), payload, bytes(-len(payload) % BLOCK)]
            extents[field] = Extent(self.size + BLOCK, len(payload))
            self.size += BLOCK + len(payload) + -len(payload) % BLOCK
        for chunk in chunks:
            self._file.write(chunk)
            self._sha256.update(chunk)
            crc = self._crc32(chunk, crc)
        self._file.flush()
        return WrittenSample(extents, start, self.size, crc)

    def finish(self) -> str:
        """Ends the archive, brings it to the disk, and returns the sha256 of the whole file in hex."""
        self._file.write(END_OF_ARCHIVE)
        self._sha256.update(END_OF_ARCHIVE)
        self.size += len(END_OF_ARCHIVE)
        self._file.flush()
        sync(self._file)
        self._file.close()
        return self._sha256.hexdigest()

    def abandon(self) -> None:
        """Closes the file as it is; an interrupted shard is continued by its journal or thrown away."""
        self._file.close()


def sync(file: IO[bytes]) -> None:
    """Brings a file's content to the disk, so that a rename never publishes an empty one."""
    os.fsync(file.fileno())


def member_at(block: bytes, position: int) -> TarMember:
    """The member whose 512-byte header, read at ``position``, is ``block``.

    Raises:
        TarDamage: the block is not byte for byte a header that :class:`TarWriter` makes.
    """
    try:
        name, size = block[:MAX_NAME].rstrip(b"\0").decode("ascii"), int(block[_SIZE], 8)
        made = header(name, size)
    except ValueError:
        raise TarDamage(position, "no tar header") from None
    key, field = split_name(name)
    if not is_key(key) or not is_field(field) or made != block:
        raise TarDamage(position, f"an unexpected tar header for {name!r}")
    return TarMember(name, position + BLOCK, size)


def walk(file: IO[bytes]) -> Iterator[TarMember]:
    """The members of a shard, in order, checking everything that :class:`TarWriter` promises.

    Raises:
        TarDamage: a header that is not byte for byte what the writer makes, non-zero padding, a payload that runs
            past the end of the file, a missing end of archive, or anything after it.
    """
    end, position = file.seek(0, 2), 0
    while True:
        file.seek(position)
        block = file.read(BLOCK)
        if len(block) < BLOCK:
            raise TarDamage(position, "the file ends without an end of archive (truncated)")
        if block == bytes(BLOCK):
            if file.read(BLOCK + 1) != bytes(BLOCK):
                raise TarDamage(position, "the end of the archive is not two empty blocks")
            return
        member = member_at(block, position)
        if member.end > end:
            raise TarDamage(position, f"{member.name!r} runs past the end of the file (truncated)")
        padding = -member.size % BLOCK
        file.seek(member.offset + member.size)
        if file.read(padding) != bytes(padding):
            raise TarDamage(position, f"the padding after {member.name!r} is not empty")
        yield member
        position = member.end
