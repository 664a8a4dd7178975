"""Finds the file that a table's path means, though table and source begin their paths at different folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shardforge.sources.recognise import image_stem


class PathIndex:
    """Paths of the source, found by those of a table.

    One path must end as the other does, folder by folder, and no second file may fit as well: the table's path may
    begin further out (``CheXpert-v1.0-small/train/…``) or further in. If none fits with its extension (``.jpg`` in
    the table, ``.dcm`` in the source), extensions do not count.

    Attributes:
        contested: files that differing paths of the table led to; none of them can be trusted.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        every = sorted({path for path in paths if path})
        self._levels = [_Level(every, lambda path: path), _Level(every, _without_extension)]
        self._claims: dict[str, str] = {}
        self.contested: set[str] = set()

    def find(self, name: str) -> tuple[str | None, bool]:
        """The file that a table's path means, or None; and whether there are several."""
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        several = False
        for level in self._levels:
            path, ambiguous = level.find(level.key("/".join(parts)))
            if path is not None:
                self._claim(path, "/".join(parts))
                return path, False
            several |= ambiguous
        return None, several

    def _claim(self, path: str, name: str) -> None:
        if self._claims.setdefault(path, name) != name:
            self.contested.add(path)


class _Level:
    """An index by whole path and by what paths end with; None stands for several files."""

    def __init__(self, paths: Iterable[str], key: Callable[[str], str]) -> None:
        self.key = key
        self._whole: dict[str, str | None] = {}
        self._ends: dict[str, str | None] = {}
        for path in paths:
            name = key(path)
            self._whole[name] = None if name in self._whole else path
            while "/" in name:
                name = name.partition("/")[2]
                self._ends[name] = None if name in self._ends else path

    def find(self, name: str) -> tuple[str | None, bool]:
        end = name
        while end:
            if end in self._whole:
                return self._whole[end], self._whole[end] is None
            end = end.partition("/")[2]
        return self._ends.get(name), name in self._ends and self._ends[name] is None


def _without_extension(path: str) -> str:
    folder, slash, base = path.rpartition("/")
    return f"{folder}{slash}{image_stem(base)}"
