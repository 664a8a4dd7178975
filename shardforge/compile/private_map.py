"""The private map: which hash stands for which original, for the owner of the data, beside the identity key."""

from __future__ import annotations

import csv
import fcntl
import io
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from shardforge.compile.identity_key import refuse_inside
from shardforge.dicom.privacy import Kind
from shardforge.errors import UsageError
from shardforge.storage import explain, sync_folder

_HEADER = ["kind", "hash", "original"]


class Original(NamedTuple):
    """One line of the map."""

    kind: Kind
    hash: str
    original: str


def write_private_map(path: Path, rows: Iterable[Original], outside: Iterable[Path] = ()) -> None:
    """Adds rows to the map at ``path`` (csv, UTF-8, mode 0600), sorted, each once.

    Rows of earlier builds stay. Builds that write at once wait for each other; a reader sees the old map or the new.

    Args:
        outside: folders (source and output) that must not hold the map: it would be published with them.

    Raises:
        UsageError: what stands there is no such map, or the place lies inside one of ``outside``.
        StorageError: it cannot be read or written.
    """
    refuse_inside(path, outside, "the private map")
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise explain(error, path) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        known = _read(path) if path.exists() else set()
        wanted = known.union((row.kind, row.hash, row.original) for row in rows)
        if wanted != known or not path.exists():
            _write(path, wanted)
    except OSError as error:
        raise explain(error, path) from None
    finally:
        os.close(folder)


def _read(path: Path) -> set[tuple[str, str, str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogatepass", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (csv.Error, UnicodeDecodeError):
        lines = []
    if not lines or lines[0] != _HEADER or any(len(line) != len(_HEADER) for line in lines):
        raise UsageError("is no private map", where=path, todo="Choose another place for it.")
    return {(kind, digest, original) for kind, digest, original in lines[1:]}


def _write(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_HEADER)
    writer.writerows(sorted(rows))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(text.getvalue().encode("utf-8", "surrogatepass"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
