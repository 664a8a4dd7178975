"""Tars made elsewhere: USTAR, PAX, GNU and V7, as any writer leaves them.

Python's ``tarfile`` parses single headers; walking is done here, because it reads extension headers of any size into
memory and ends without a word at the first header that is none.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shardforge.shards.one_pass import OnePass
from shardforge.shards.tar import BLOCK, TarDamage

MAX_EXTENSION = 2**20
"""Longest PAX or GNU extension header that is read, in bytes; a path has 4 096 at most."""

_PAX_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ([^=]+)=")
_KINDS = {
    tarfile.LNKTYPE: "hard links",
    tarfile.SYMTYPE: "symbolic links",
    tarfile.DIRTYPE: "folders",
    tarfile.GNUTYPE_SPARSE: "sparse files",
}
_TYPE = 156
"""Where a header has the type of its entry."""
_GNU_EXTENDED, _GNU_MORE = 482, 504
"""Where a header, and a block of further sparse maps, say that another such block follows."""


@dataclass(frozen=True)
class ForeignMember:
    """A regular file in a tar; ``offset`` is where its payload starts. Bytes of the name that are no UTF-8 are
    escaped (``\\xff``)."""

    name: str
    offset: int
    size: int


class ForeignWalk:
    """The regular files of a tar, in order.

    Between two members the caller may read the payload of the first from ``source``; what it leaves is passed over.

    Args:
        source: at the start of the tar.
        size: of the file, in bytes.

    Attributes:
        skipped: kind of entry that is no regular file → how many.
        damage: where and how the tar ends to make sense; None for one that is whole.
        lost: name of the member that the damage cut, if it is known.
    """

    def __init__(self, source: OnePass, size: int) -> None:
        self.skipped: Counter[str] = Counter()
        self.damage: TarDamage | None = None
        self.lost: str | None = None
        self._source, self._size = source, size
        self._global: dict[str, str] = {}

    def __iter__(self) -> Iterator[ForeignMember]:
        try:
            local: dict[str, str] = {}
            while (info := self._header()) is not None:
                member = self._entry(info, local)
                if member is not None:
                    yield member
                    end = member.offset + member.size + -member.size % BLOCK
                    self._source.pass_over(end - self._source.position)
        except TarDamage as damage:
            self.damage = damage

    def _header(self) -> tarfile.TarInfo | None:
        at = self._source.position
        block = self._source.take(BLOCK)
        if block == bytes(BLOCK):
            return self._another(at)
        if len(block) < BLOCK:
            raise TarDamage(at, "the file ends without an end of archive (truncated)")
        try:
            info = _parsed(block)
        except (tarfile.HeaderError, ValueError) as error:
            raise TarDamage(at, f"no tar header ({error})") from None
        if info.type == tarfile.GNUTYPE_SPARSE and block[_GNU_EXTENDED]:
            while len(more := self._source.take(BLOCK)) == BLOCK and more[_GNU_MORE]:
                pass
        return info

    def _another(self, at: int) -> tarfile.TarInfo | None:
        """The first header of an archive behind the end of one, as ``cat a.tar b.tar`` leaves it, or None.

        Args:
            at: where the end begins; damage there is told, as nobody knows what it was to be.
        """
        rest = self._size - self._source.position
        while block := self._source.take(min(BLOCK, self._size - self._source.position)):
            if any(block):
                try:
                    info = _parsed(block)
                except (tarfile.HeaderError, ValueError):
                    what = f"more than padding in the {rest:,} bytes after the end of the archive"
                    raise TarDamage(at, what) from None
                self._global.clear()
                return info
        return None

    def _entry(self, info: tarfile.TarInfo, local: dict[str, str]) -> ForeignMember | None:
        """The member that a header begins, or None. ``local`` holds for the next entry only."""
        if info.type in (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE):
            local |= _pax(self._extension(info), self._source.position)
            return None
        if info.type == tarfile.XGLTYPE:
            self._global |= _pax(self._extension(info), self._source.position)
            return None
        if info.type == tarfile.GNUTYPE_LONGNAME:
            local["path"] = self._extension(info).partition(b"\0")[0].decode("utf-8", "surrogateescape")
            return None
        if info.type == tarfile.GNUTYPE_LONGLINK:
            self._extension(info)
            return None
        told = {**self._global, **local}
        local.clear()
        name = told.get("path", info.name)
        if info.type == tarfile.AREGTYPE and name.endswith("/"):
            info.type = tarfile.DIRTYPE
        offset, size = self._source.position, _size(info, told, self._source.position)
        kind = _kind(info, told)
        if kind is not None:
            self.skipped[kind] += 1
            if info.isreg() or info.type not in tarfile.SUPPORTED_TYPES:
                self._pass(size, name)
            return None
        name = _plain_name(name)
        if offset + size > self._size:
            self._cut(name, size)
        return ForeignMember(name, offset, size)

    def _pass(self, size: int, name: str) -> None:
        if self._source.position + size > self._size:
            self._cut(_plain_name(name), size)
        self._source.pass_over(size + -size % BLOCK)

    def _cut(self, name: str, size: int) -> None:
        self.lost = name
        there = self._size - self._source.position
        what = f"{name!r} runs past the end of the file (truncated): {there:,} of {size:,} bytes are there"
        raise TarDamage(self._source.position - BLOCK, what)

    def _extension(self, info: tarfile.TarInfo) -> bytes:
        at = self._source.position
        if not 0 <= info.size <= MAX_EXTENSION:
            raise TarDamage(at, f"an extension header of {info.size:,} bytes")
        data = self._source.take(info.size + -info.size % BLOCK)[: info.size]
        if len(data) < info.size:
            raise TarDamage(at, "an extension header runs past the end of the file (truncated)")
        return data


def _parsed(block: bytes) -> tarfile.TarInfo:
    """The header in a block; one of the old type 0 is left a regular file, whose name may end in a slash.

    V7 marks a folder by that slash alone. ``tarfile`` looks for it in the 100 bytes of the header, where a longer
    name is cut, perhaps behind a slash, and then takes a file's payload for headers (CPython gh-141707).

    Raises:
        tarfile.HeaderError, ValueError: the block is no header.
    """
    info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    if info.isdir() and block[_TYPE : _TYPE + 1] == tarfile.AREGTYPE:
        info.type, info.name = tarfile.AREGTYPE, f"{info.name}/"
    return info


def _pax(data: bytes, at: int) -> dict[str, str]:
    """The records of a PAX header (POSIX.1-2001 pax, "Extended Header"): ``LENGTH KEY=VALUE\\n``."""
    records, place = {}, 0
    while place < len(data) and data[place]:
        match = _PAX_RECORD.match(data, place)
        length = 0 if match is None else int(match[1])
        if match is None or not match.end() < place + length <= len(data) or data[place + length - 1] != 0x0A:
            raise TarDamage(at, "a PAX header that is none")
        value = data[match.end() : place + length - 1]
        records[match[2].decode("utf-8", "surrogateescape")] = value.decode("utf-8", "surrogateescape")
        place += length
    return records


def _size(info: tarfile.TarInfo, told: Mapping[str, str], at: int) -> int:
    text = told.get("size", str(info.size))
    if re.fullmatch(r"[0-9]{1,18}", text) is None:
        raise TarDamage(at, f"a member of {text!r} bytes")
    return int(text)


def _kind(info: tarfile.TarInfo, told: Mapping[str, str]) -> str | None:
    """What an entry is called that is no regular file."""
    if any(name.startswith("GNU.sparse.") for name in told):
        return "sparse files"
    if info.type in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE):
        return None
    return _KINDS.get(info.type, "special entries")


def _plain_name(name: str) -> str:
    """Without ``./`` and ``/`` in front, as ``tar cf x.tar .`` and others write it."""
    return re.sub(r"^(?:\.?/+)+", "", name).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
