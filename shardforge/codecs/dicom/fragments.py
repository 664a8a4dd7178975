"""Encapsulated pixel data: fragments, and which of them make up a frame (PS3.5 A.4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

from shardforge.codecs.dicom.syntaxes import sniff_fragment
from shardforge.codecs.file_bytes import Bytes
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_ITEM, _SEQUENCE_DELIMITER = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0"


@dataclass(frozen=True)
class Fragment:
    """One item of encapsulated pixel data.

    Attributes:
        item: offset of its tag.
        start, end: of its bytes.
        whole: the file does not end inside it.
    """

    item: int
    start: int
    end: int
    whole: bool = True


@dataclass(frozen=True)
class Encapsulated:
    """The fragments of an element, in file order.

    Attributes:
        fragments: without the offset table.
        offsets: the Basic Offset Table.
        first_item: offset from which those of the table count.
        delimited: the sequence delimiter is there.
    """

    fragments: tuple[Fragment, ...]
    offsets: tuple[int, ...]
    first_item: int
    delimited: bool


def walk_fragments(data: Bytes, start: int) -> Encapsulated:
    """Goes from item to item by their lengths, so that no bytes inside a fragment are taken for a delimiter.

    What is no item ends the element, as the end of the file does.

    Args:
        start: offset of the element's value.

    Raises:
        SampleError: ``truncated`` if there is not even an offset table, ``corrupt`` if the value is no sequence of
            items.
    """
    if len(data) < start + 8:
        raise SampleError(Reason.TRUNCATED, "the file ends before the first fragment")
    if data[start : start + 4] != _ITEM:
        raise SampleError(Reason.CORRUPT, "encapsulated pixel data without items")
    size = int.from_bytes(data[start + 4 : start + 8], "little")
    at = start + 8 + size
    if at > len(data):
        raise SampleError(Reason.TRUNCATED, "the file ends inside the offset table")
    offsets = struct.unpack_from(f"<{size // 4}I", data[start + 8 : at])
    first, fragments = at, []
    while (head := data[at : at + 8])[:4] == _ITEM and len(head) == 8:
        begin = at + 8
        end = begin + int.from_bytes(head[4:], "little")
        fragments.append(Fragment(at, begin, min(end, len(data)), end <= len(data)))
        at = end
    delimited = head[:4] == _SEQUENCE_DELIMITER
    return Encapsulated(tuple(fragments), offsets, first, delimited)


def frames_of(
    data: Bytes, found: Encapsulated, frames: int, extended: tuple[int, ...] = ()
) -> tuple[tuple[tuple[Fragment, ...], ...], tuple[Flag, ...]]:
    """Which fragments make up which frame.

    Tried in this order: an offset table (extended before basic) that gives every frame the start of a fragment; one
    fragment for each frame; all of them for a single frame; a frame for each fragment that begins like a codestream.

    Args:
        frames: that the header counts.
        extended: the Extended Offset Table (PS3.3 C.7.6.3.1.8), if there is one.

    Returns:
        The fragments of each frame, ``frames`` entries at most (fewer if the data end early); ``excess_frames``,
        ``missing_sequence_delimiter``.
    """
    fragments = found.fragments
    groups: list[tuple[Fragment, ...]] = []
    for offsets in (extended, found.offsets):
        if not groups and len(offsets) >= max(2, frames):
            groups = _by_offsets(fragments, offsets, found.first_item)
    if not groups and frames == 1:
        groups = [fragments] if fragments else []
    elif not groups and len(fragments) == frames:
        groups = [(fragment,) for fragment in fragments]
    elif not groups:
        groups = _by_start(data, fragments)
    whole = all(fragment.whole for fragment in fragments)
    flags = (Flag.EXCESS_FRAMES,) if len(groups) > frames else ()
    if not found.delimited and whole:
        flags = (*flags, Flag.MISSING_SEQUENCE_DELIMITER)
    return tuple(groups[:frames]), flags


def _by_offsets(fragments: tuple[Fragment, ...], offsets: tuple[int, ...], first: int) -> list[tuple[Fragment, ...]]:
    """Fragments between the offsets; nothing if one of these is no fragment's, or they do not rise."""
    place = {fragment.item - first: number for number, fragment in enumerate(fragments)}
    starts = [place.get(offset, -1) for offset in offsets]
    if starts[:1] != [0] or any(b <= a for a, b in pairwise(starts)):
        return []
    ends = [*starts[1:], len(fragments)]
    return [fragments[start:end] for start, end in zip(starts, ends, strict=True)]


def _by_start(data: Bytes, fragments: tuple[Fragment, ...]) -> list[tuple[Fragment, ...]]:
    groups: list[list[Fragment]] = []
    for fragment in fragments:
        if not groups or sniff_fragment(data[fragment.start : min(fragment.end, fragment.start + 512)]):
            groups.append([])
        groups[-1].append(fragment)
    return [tuple(group) for group in groups]


def join(data: Bytes, fragments: tuple[Fragment, ...]) -> bytes:
    """The bytes of a frame.

    Raises:
        SampleError: ``truncated`` if the file ends inside one of its fragments.
    """
    if not all(fragment.whole for fragment in fragments):
        raise SampleError(Reason.TRUNCATED, "the file ends inside the frame's last fragment")
    if len(fragments) == 1:
        return data[fragments[0].start : fragments[0].end]
    return b"".join(data[fragment.start : fragment.end] for fragment in fragments)
