"""Names of files as Unicode that every format can carry, one per file."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from shardforge.sources.item import Item


def source_name(path: str) -> str:
    """A path as valid, NFC-normalised Unicode.

    Args:
        path: as the file system has it, undecodable bytes kept by ``surrogateescape``; those come out as ``\\xff``.
    """
    if path.isascii():
        return path
    decoded = os.fsencode(path).decode("utf-8", "backslashreplace")
    name = unicodedata.normalize("NFC", decoded)
    return path if name == path else name


def sort_items(items: list[Item]) -> None:
    """Sorts by source, by code point, and gives files whose names became equal sources of their own.

    Of several such files the one whose raw name *is* the source keeps it; the others get their raw bytes, escaped.
    Items made of one and the same file share its source and keep their order.
    """
    by_source = attrgetter("source")
    items.sort(key=by_source)
    level = 0
    while clashes := list(_clashes(items)):
        level += 1
        for index in clashes:
            items[index] = replace(items[index], source=_escape(_raw(items[index]), level))
        items.sort(key=by_source)


def _clashes(items: list[Item]) -> Iterator[int]:
    for source, group in groupby(range(len(items)), key=lambda index: items[index].source):
        members = list(group)
        if len(members) > 1 and len({_raw(items[index]) for index in members}) > 1:
            yield from (index for index in members if _raw(items[index]) != source)


def _raw(item: Item) -> str:
    main = item.files.get("image")
    return item.source if main is None else main.path


def _escape(path: str, level: int) -> str:
    text = os.fsencode(path).decode("ascii", "backslashreplace")
    # An escaped name may be another file's real name; a higher level moves on from it.
    return text if level == 1 else f"{text}~{level}"
