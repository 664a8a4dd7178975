"""Lists a folder tree: every regular file once, every other thing with the reason why it is left out."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from shardforge.errors import StorageError
from shardforge.sources.item import SourceFile, UnknownFile
from shardforge.sources.names import source_name

LEAVES_SOURCE = "symbolic link out of the source folder"
BROKEN_LINK = "broken symbolic link"
LOOP = "symbolic link to a folder it lies in"
NOT_REGULAR = "not a regular file"

_LEADS_NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)


@dataclass(slots=True)
class Folder:
    """One folder of the tree.

    Attributes:
        path: POSIX path relative to the root, "" for the root.
        hidden: whether its name or that of a folder above begins with a dot.
        files: regular files, links that were followed included, sorted by name.
        blocked: what is neither a file nor a folder that was followed; ``path`` is relative to the root, raw.
        inner_links: links that were followed to another place below the root, where their target is listed as well.
    """

    path: str
    hidden: bool
    files: list[SourceFile] = field(default_factory=list)
    blocked: list[UnknownFile] = field(default_factory=list)
    inner_links: int = 0


@dataclass(slots=True)
class _Pending:
    path: str
    hidden: bool
    above: tuple[tuple[int, int], ...]


def walk(root: str, follow_symlinks: bool) -> Iterator[Folder]:
    """The folders below (and including) ``root``, sorted.

    Links to files and folders inside the root are followed; links that leave it only with ``follow_symlinks``. A
    folder is never entered below itself. Pipes, sockets and devices are never opened.

    Raises:
        StorageError: a folder cannot be listed, or a file's size cannot be asked for.
    """
    real_root = os.path.realpath(root)
    pending = [_Pending("", False, ())]
    while pending:
        place = pending.pop()
        folder = Folder(place.path, place.hidden)
        absolute = f"{root}/{place.path}" if place.path else root
        identity = _identity(absolute)
        if identity in place.above:
            folder.blocked.append(UnknownFile(place.path, LOOP))
            yield folder
            continue
        here = (*place.above, identity)
        below: list[_Pending] = []
        for entry in _entries(absolute):
            path = f"{place.path}/{entry.name}" if place.path else entry.name
            if entry.is_symlink():
                target = os.path.realpath(entry.path)
                inside = target == real_root or target.startswith(real_root.rstrip("/") + "/")
                found: os.stat_result | str = _follow(entry, inside, follow_symlinks)
                folder.inner_links += inside and not isinstance(found, str)
            else:
                found = _stat(entry)
            if isinstance(found, str):
                folder.blocked.append(UnknownFile(path, found))
            elif stat.S_ISDIR(found.st_mode):
                hidden = place.hidden or entry.name.startswith(".")
                below.append(_Pending(path, hidden, here))
            elif stat.S_ISREG(found.st_mode):
                folder.files.append(SourceFile(path, found.st_size, found.st_mtime_ns))
            else:
                folder.blocked.append(UnknownFile(path, NOT_REGULAR))
        pending.extend(reversed(below))
        yield folder


def _identity(absolute: str) -> tuple[int, int]:
    try:
        status = Path(absolute).stat()
    except OSError as error:
        raise _unlistable(absolute, error) from None
    return status.st_dev, status.st_ino


def _entries(absolute: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(absolute) as entries:
            return sorted(entries, key=attrgetter("name"))
    except OSError as error:
        raise _unlistable(absolute, error) from None


def _unlistable(absolute: str, error: OSError) -> StorageError:
    return StorageError(
        f"this folder cannot be listed ({error.strerror})",
        where=source_name(absolute),
        todo="Make it readable, or move it out of the source folder.",
    )


def _stat(entry: os.DirEntry[str]) -> os.stat_result:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError as error:
        raise StorageError(f"cannot be examined ({error.strerror})", where=source_name(entry.path)) from None


def _follow(entry: os.DirEntry[str], inside: bool, follow_symlinks: bool) -> os.stat_result | str:
    """What a link leads to, or why it is not followed."""
    try:
        status = entry.stat()
    except OSError as error:
        if error.errno in _LEADS_NOWHERE:
            return BROKEN_LINK
        if not inside and not follow_symlinks:
            return LEAVES_SOURCE
        raise StorageError(f"cannot be examined ({error.strerror})", where=source_name(entry.path)) from None
    return status if inside or follow_symlinks else LEAVES_SOURCE
