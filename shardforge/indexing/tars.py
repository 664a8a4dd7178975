"""Which tars there are to index, and which split each belongs to."""

from __future__ import annotations

import fnmatch
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardforge.errors import StorageError, UsageError
from shardforge.shards.layout import SPLIT_NAME
from shardforge.shards.regular import open_regular

_PACKED_NAME = re.compile(r"\.(?:tar\.(?:gz|bz2|xz|zst|lz4|Z)|tgz|tbz2?|txz|tzst)$", re.IGNORECASE)
_PACKED_START = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}


@dataclass(frozen=True)
class FoundTar:
    """A tar to index.

    Attributes:
        name: its path inside the folder without ``.tar``: the shard's name.
        path: where it is.
        size, mtime_ns: as the file system tells them.
    """

    name: str
    path: Path
    split: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Found:
    """The tars in the order of their numbers (``train-2`` before ``train-10``), and what else there is to say."""

    tars: tuple[FoundTar, ...]
    notes: tuple[str, ...]


def find_tars(folder: Path, splits: Mapping[str, str] | None) -> Found:
    """Looks for ``*.tar`` in a folder and below.

    Args:
        splits: split → pattern of file names or paths inside the folder; the first that fits counts, tars that none
            fits are left out. None: a word in the path tells (train, val, test and the like), without one ``train``.

    Raises:
        UsageError: no folder, no tars, compressed tars, a pattern that fits nothing, an illegal split name.
        StorageError: a folder or tar cannot be read.
    """
    for name in splits or {}:
        if SPLIT_NAME.fullmatch(name) is None:
            raise UsageError(f"{name!r} is no split name (lower case letters, digits and _, starting with a letter)")
    if not folder.is_dir():
        raise UsageError("is not a folder" if folder.exists() else "does not exist", where=folder)
    paths = _tar_paths(folder)
    if not paths:
        raise UsageError("there are no tars here", where=folder)
    notes: list[str] = []
    chosen = _by_pattern(paths, splits, notes) if splits else _by_word(paths, notes)
    return Found(tuple(_found(folder, path, split) for path, split in chosen.items()), tuple(notes))


def _tar_paths(folder: Path) -> list[str]:
    """Paths inside the folder, with ``/``."""
    found, packed = [], []
    for base, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = (Path(base) / name).relative_to(folder).as_posix()
            if name.startswith("."):
                continue
            if _PACKED_NAME.search(name):
                packed.append(path)
            elif name.endswith(".tar"):
                found.append(path)
    if packed:
        raise _compressed(folder / min(packed), "by its name")
    for path in found:
        if any(0xD800 <= ord(char) < 0xE000 for char in path):
            raise UsageError(
                "the name of a tar is not UTF-8", where=folder / path.encode("utf-8", "replace").decode()
            )
    return sorted(found, key=_natural)


def _refuse(error: OSError) -> None:
    raise StorageError(f"cannot be listed ({error.strerror})", where=error.filename)


def _natural(path: str) -> list[tuple[int, str]]:
    """Numbers compare as numbers."""
    return [(int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path)]


def _by_pattern(paths: Sequence[str], splits: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    chosen = {}
    for path in paths:
        for split, pattern in splits.items():
            if fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path.rpartition("/")[2], pattern):
                chosen[path] = split
                break
    for split in splits:
        if split not in chosen.values():
            raise UsageError(f"no tar fits the pattern {splits[split]!r} of split {split!r}")
    left = [path for path in paths if path not in chosen]
    if left:
        notes.append(f"{len(left):,} tars fit no pattern and are left out ({left[0]}, for one)")
    return chosen


def _by_word(paths: Sequence[str], notes: list[str]) -> dict[str, str]:
    chosen, unknown = {}, 0
    for path in paths:
        words = re.split(r"[^a-z]+", path.removesuffix(".tar").lower())
        known = [_WORDS[word] for word in words if word in _WORDS]
        unknown += not known
        chosen[path] = known[-1] if known else "train"
    if unknown and Counter(chosen.values()).total() > unknown:
        notes.append(f"{unknown:,} tars name no split in their path and are taken for train")
    return chosen


def _found(folder: Path, path: str, split: str) -> FoundTar:
    place = folder / path
    try:
        with open_regular(place) as file:
            start, status = file.read(6), os.fstat(file.fileno())
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror})", where=place) from None
    for magic, name in _PACKED_START.items():
        if start.startswith(magic):
            raise _compressed(place, name)
    return FoundTar(path.removesuffix(".tar"), place, split, status.st_size, status.st_mtime_ns)


def _compressed(path: Path, how: str) -> UsageError:
    return UsageError(
        f"is compressed ({how}), so that no sample in it can be reached without reading all before it",
        where=path,
        todo="Unpack it (`gunzip`, say), or read it with SequentialDataset.",
    )
