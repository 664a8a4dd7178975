"""Writing files that foreign data names: never outside the folder that the user chose."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from shardforge.errors import StorageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_confined(directory: Path, name: str, data: bytes) -> Path:
    """Writes ``directory/name``; folders inside ``name`` are made if needed and may not be links.

    The file appears whole, and takes the place of what was there: a link of that name is replaced, not followed.

    Args:
        directory: is made if needed; may itself be a link, since the user chose it.
        name: of parts joined by ``/``, none of them ``..`` or empty.

    Raises:
        ValueError: an illegal name.
        StorageError: the file cannot be written.
    """
    *folders, base = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in (*folders, base)):
        raise ValueError(f"illegal name {name!r}")
    path = directory / name
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                handle = _enter(handle, folder)
            _replace(handle, base, data)
        finally:
            os.close(handle)
    except OSError as error:
        raise StorageError(f"cannot be written ({error.strerror})", where=path) from None
    return path


def _enter(parent: int, name: str) -> int:
    """Opens a folder inside another, made if needed, and closes the other."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    child = os.open(name, _FOLDER, dir_fd=parent)
    os.close(parent)
    return child


def _replace(folder: int, name: str, data: bytes) -> None:
    temporary = f".{secrets.token_hex(8)}.part"
    file = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder
    )
    try:
        with open(file, "wb") as out:
            out.write(data)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
