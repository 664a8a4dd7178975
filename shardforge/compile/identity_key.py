"""The file with a user's identity key: made on first use, outside of every dataset, for its owner's eyes only."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from shardforge.dicom.privacy import SECRET_BYTES, IdentityKey
from shardforge.errors import StorageError, UsageError
from shardforge.storage import explain, sync_folder

_FORM = re.compile(rb"shardforge identity key 1\n([0-9a-f]{%d})\n" % (2 * SECRET_BYTES))
_LONGEST = 4096


@dataclass(frozen=True)
class KeyFile:
    """An identity key and where it is kept.

    Attributes:
        made: this call made it.
        notes: what the user should know, in whole sentences.
    """

    key: IdentityKey
    path: Path
    made: bool
    notes: tuple[str, ...] = ()

    @property
    def map_path(self) -> Path:
        """Where the private map from hash to original is kept: beside the key."""
        return self.path.with_name(f"{self.path.name}.map.csv")


def default_key_path() -> Path:
    """``$XDG_CONFIG_HOME/shardforge/identity.key``, by default below ``~/.config``.

    Raises:
        UsageError: the user has no home folder.
    """
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification wants relative paths ignored.
    try:
        home = Path.home()
    except RuntimeError:
        home = Path("/")
    if not Path(configured).is_absolute() and (not home.is_absolute() or home == Path("/")):
        raise UsageError("there is no home folder to keep the identity key in", todo="Use --key-file PATH.")
    base = Path(configured) if Path(configured).is_absolute() else home / ".config"
    return base / "shardforge" / "identity.key"


def load_or_make(path: Path | None, outside: Iterable[Path] = ()) -> KeyFile:
    """The key in ``path``, or in the user's own key file; made there if there is none.

    Several builds that start at once end up with one key: the file appears whole or not at all, and only once.

    Args:
        outside: folders (source and output) that must not hold the key: it would be published with them.

    Raises:
        UsageError: the file is no key file, or lies inside one of ``outside``.
        StorageError: it cannot be read or made.
    """
    place = default_key_path() if path is None else Path(os.path.abspath(path))  # noqa: PTH100 - keeps links
    refuse_inside(place, outside, "the identity key")
    try:
        if path is None:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = not place.exists() and _make(place)
        data, mode = _read(place)
    except OSError as error:
        todo = "An identity key is kept there; choose another place with --key-file PATH."
        raise StorageError(explain(error, place).what, where=place, todo=todo) from None
    match = _FORM.fullmatch(data)
    if match is None:
        raise UsageError(
            "is no identity key",
            where=place,
            todo="Restore the file, or choose another with --key-file; a new key gives every patient new hashes.",
        )
    notes = []
    if made:
        notes.append(
            f"made a new identity key in {place}; keep it: only with it do later builds give the same hashes"
        )
    if mode & 0o077:
        notes.append(f"other users may read the identity key in {place}; run: chmod 600 {place}")
    return KeyFile(IdentityKey(bytes.fromhex(match[1].decode())), place, made, tuple(notes))


def refuse_inside(path: Path, folders: Iterable[Path], what: str) -> None:
    """Refuses a place for something secret inside of folders that others get.

    Raises:
        UsageError: ``path``, or what it links to, lies inside one of the folders.
    """
    places = {Path(os.path.realpath(path)), Path(os.path.realpath(path.parent)) / path.name}
    for folder in folders:
        root = Path(os.path.realpath(folder))
        if any(place == root or root in place.parents for place in places):
            raise UsageError(f"{what} would lie inside {folder}", where=path, todo="Choose a place outside of it.")


def _make(place: Path) -> bool:
    """Whether this call made the file. It gets its name when it is whole, and never another one's name."""
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(f"shardforge identity key 1\n{secrets.token_hex(SECRET_BYTES)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, place)
        except FileExistsError:
            return False
    finally:
        temporary.unlink()
    sync_folder(place.parent)
    return True


def _read(place: Path) -> tuple[bytes, int]:
    """Its bytes, as many as a key can have, and its mode. Nothing but a regular file is read (a pipe would block)."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        return (file.read(_LONGEST) if stat.S_ISREG(mode) else b""), mode
