"""TIFF directories (TIFF 6.0, BigTIFF), as found in TIFF files and inside every EXIF block. Bounded, no pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_INTEGERS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}


class BadTagsError(ValueError):
    """A TIFF structure that contradicts itself or ends early."""


class EndsEarlyError(BadTagsError):
    """The first directory would lie behind the end of the data."""


@dataclass(frozen=True)
class Tag:
    """One directory entry: its type, its number of values and where in the file they are."""

    kind: int
    count: int
    offset: int


@dataclass(frozen=True)
class Directory:
    """One image file directory.

    Attributes:
        data: the whole file or EXIF block.
        order: ``<`` or ``>``.
        tags: tag number → entry; the first of duplicates.
        following: offset of the next directory, 0 if none.
    """

    data: bytes
    order: str
    tags: dict[int, Tag]
    following: int

    def integers(self, number: int) -> tuple[int, ...]:
        """The values of an integer tag; empty if the tag is absent.

        Raises:
            BadTagsError: the tag is no integer, or its values lie outside the data.
        """
        tag = self.tags.get(number)
        if tag is None:
            return ()
        if tag.kind not in _INTEGERS:
            raise BadTagsError(f"tag {number} has type {tag.kind}")
        raw = self.raw(number)
        return struct.unpack(f"{self.order}{tag.count}{_INTEGERS[tag.kind]}", raw)

    def integer(self, number: int, default: int) -> int:
        """The first value of an integer tag."""
        values = self.integers(number)
        return values[0] if values else default

    def raw(self, number: int) -> bytes:
        """The bytes of a tag's values; empty if the tag is absent."""
        tag = self.tags.get(number)
        if tag is None:
            return b""
        size = _SIZES.get(tag.kind, 1) * tag.count
        if tag.offset + size > len(self.data):
            raise BadTagsError(f"the values of tag {number} lie outside the data")
        return self.data[tag.offset : tag.offset + size]


def directories(data: bytes) -> Iterator[Directory]:
    """The chain of directories, first to last; a loop or an offset outside the data ends it.

    Raises:
        BadTagsError: not a TIFF structure.
        EndsEarlyError: the first directory cannot be read.
    """
    order = {b"II": "<", b"MM": ">"}.get(data[:2])
    if order is None or len(data) < 8:
        raise BadTagsError("no TIFF header")
    (magic,) = struct.unpack_from(order + "H", data, 2)
    if magic not in (42, 43):
        raise BadTagsError("no TIFF header")
    big = magic == 43
    try:
        (offset,) = struct.unpack_from(order + ("Q" if big else "I"), data, 8 if big else 4)
    except struct.error:
        raise EndsEarlyError("the header ends early") from None
    seen: set[int] = set()
    while offset and offset not in seen:
        seen.add(offset)
        try:
            directory = _directory(data, order, offset, big)
        except struct.error:
            if len(seen) > 1:
                return
            raise EndsEarlyError("the first directory lies outside the data") from None
        yield directory
        offset = directory.following


def _directory(data: bytes, order: str, offset: int, big: bool) -> Directory:
    if offset > len(data):
        raise struct.error
    count_format, entry_format, inline = ("Q", "HHQ", 8) if big else ("H", "HHI", 4)
    (count,) = struct.unpack_from(order + count_format, data, offset)
    at = offset + struct.calcsize(order + count_format)
    step = struct.calcsize(order + entry_format) + inline
    if count * step > len(data):
        raise struct.error
    tags: dict[int, Tag] = {}
    for _ in range(count):
        number, kind, values = struct.unpack_from(order + entry_format, data, at)
        place = at + step - inline
        if _SIZES.get(kind, 1) * values > inline:
            (place,) = struct.unpack_from(order + ("Q" if big else "I"), data, place)
        tags.setdefault(number, Tag(kind, values, place))
        at += step
    try:
        (following,) = struct.unpack_from(order + ("Q" if big else "I"), data, at)
    except struct.error:
        following = 0
    return Directory(data, order, tags, following)
