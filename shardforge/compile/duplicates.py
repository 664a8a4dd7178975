"""Identical files: found by their bytes, kept in one split, and dropped but one where the recipe says so."""

from __future__ import annotations

import hashlib
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from shardforge.compile.progress import Reporter
from shardforge.compile.source_file import hash_source
from shardforge.sources.item import Item

_THREADS = 8
_AT_ONCE = 1024
"""Paths handed to the threads at a time."""


@dataclass(frozen=True)
class Duplicates:
    """What is known of identical files.

    Attributes:
        hashes: item number → sha256 in hex of its main file, where another of its size exists.
        sets: numbers of the items whose main files are identical (the same frame of them, where every frame is an
            item), ascending; sets of one are left out.
    """

    hashes: Mapping[int, str] = field(default_factory=dict)
    sets: tuple[tuple[int, ...], ...] = ()

    def digest(self, inputs: str) -> str:
        """The digest of the inputs with what was found out about their bytes."""
        if not self.hashes:
            return inputs
        found = hashlib.sha256(inputs.encode())
        for number, digest in sorted(self.hashes.items()):
            found.update(f"\n{number} {digest}".encode())
        return found.hexdigest()


def find_duplicates(root: Path, items: Sequence[Item], most_bytes: int, reporter: Reporter) -> Duplicates:
    """Compares the main files of the items by sha256. Rows of a table that name one file count as identical.

    Only files whose size occurs more than once are read, a block at a time, by a few threads.

    Args:
        root: the source folder.
        most_bytes: larger files are left alone; they become no sample.
    """
    files = {i: item.files["image"] for i, item in enumerate(items) if "image" in item.files and not item.problem}
    # One count for a file, however many frames it has; but one for each row of a table that names it.
    sizes = Counter(file.size for i, file in files.items() if items[i].frame == 0)
    suspects = {i: file for i, file in files.items() if sizes[file.size] > 1 and file.size <= most_bytes}
    paths = sorted({file.path for file in suspects.values()})
    if not paths:
        return Duplicates()
    reporter.say(f"dedup: reading {len(paths):,} files whose size occurs more than once")
    found = _hash_all(root, paths, {file.path: file.size for file in suspects.values()}, reporter)
    hashes = {i: digest for i, file in suspects.items() if (digest := found[file.path]) is not None}
    members: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, digest in hashes.items():
        members[digest, items[number].frame].append(number)
    return Duplicates(hashes, tuple(tuple(numbers) for numbers in members.values() if len(numbers) > 1))


def _hash_all(
    root: Path, paths: Sequence[str], sizes: Mapping[str, int], reporter: Reporter
) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    read = 0
    reporter.start(len(paths), 0)
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as threads:
        for start in range(0, len(paths), _AT_ONCE):
            part = paths[start : start + _AT_ONCE]
            for path, digest in zip(part, threads.map(lambda path: hash_source(root, path), part), strict=True):
                found[path] = digest
                read += sizes[path]
                reporter.update(len(found), 0, read)
    reporter.finish()
    return found


def drop_all_but_first(
    duplicates: Duplicates, usable: Sequence[bool], open_to_drop: Sequence[bool]
) -> dict[int, int]:
    """Item to drop → the item kept in its place: of every set the first that is usable.

    What takes reading is not known yet: a box or point outside the picture, or a mask or another sidecar that cannot
    be used, fails the item that was kept, and its set then gives no sample. (Damage of the main file and filters by
    size would meet every item of the set alike.)

    Args:
        usable: per item, whether nothing is known against it.
        open_to_drop: per item, whether it may be dropped as a duplicate (it fails for no reason of its own file).
    """
    dropped: dict[int, int] = {}
    for numbers in duplicates.sets:
        kept = next((number for number in numbers if usable[number]), None)
        if kept is not None:
            dropped |= {number: kept for number in numbers if number != kept and open_to_drop[number]}
    return dropped


def joined_groups(items: Sequence[Item], duplicates: Duplicates) -> list[str]:
    """Per item, the name of what must stay in one split with it: the user's group, or the file itself, joined
    through identical files.

    Joined groups have the name of the first of the user's among them, so that a group that is joined with files
    without one stays where it was.
    """
    own = [item.source if item.group is None else f"group\0{item.group}" for item in items]
    if not duplicates.sets:
        return own
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while (above := parent.get(name, name)) != name:
            # Halves the way for those who come after.
            parent[name] = parent.get(above, above)
            name = above
        return name

    has_group = {own[i]: items[i].group is not None for numbers in duplicates.sets for i in numbers}
    for numbers in duplicates.sets:
        for number in numbers[1:]:
            first, second = find(own[numbers[0]]), find(own[number])
            if first != second:
                root, other = sorted((first, second), key=lambda name: (not has_group[name], name))
                parent[other] = root
    return [find(name) for name in own]


def duplicate_warnings(
    items: Sequence[Item], duplicates: Duplicates, told_labels: Sequence[object], splits: Sequence[str]
) -> Iterable[str]:
    """What people should know about identical files: labels that contradict each other, splits of the source's own.

    Args:
        told_labels: per item, its label; None where it has none.
        splits: per item.
    """
    for what, values, verb in (("labels", told_labels, "contradict each other"), ("splits", splits, "differ")):
        found = [pair for numbers in duplicates.sets if (pair := _first_difference(numbers, values)) is not None]
        if found:
            one, two = found[0]
            count = f"{len(found):,} set{'s' * (len(found) != 1)} of identical files"
            example = f"{items[one].shown} is {values[one]!r}, {items[two].shown} {values[two]!r}"
            yield f"{count} whose {what} {verb}; for one, {example}"


def _first_difference(numbers: Sequence[int], values: Sequence[object]) -> tuple[int, int] | None:
    known = [number for number in numbers if values[number] is not None]
    return next(((known[0], number) for number in known if values[number] != values[known[0]]), None)
