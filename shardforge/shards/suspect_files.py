"""Reading the files of a dataset that may be damaged: whatever is wrong with a file is noted, not raised."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TypeVar

from shardforge.shards import layout
from shardforge.shards.damage import Findings
from shardforge.shards.regular import open_regular
from shardforge.shards.rows import Note

_Result = TypeVar("_Result")


class SuspectFiles:
    """The files of one dataset, and what was found to be wrong with them.

    Args:
        progress: is called with the name of every shard and index file before it is read.

    Attributes:
        findings: what is wrong so far.
        owners: sha256 → the file that should have it; tells when files were swapped.
        foreign: whether the tars were made elsewhere, so that they have names of their own.
        manifest_intact: whether the digests in the manifest can be believed.
        bytes: read so far.
    """

    def __init__(self, root: Path, progress: Callable[[str], None]) -> None:
        self.root, self._progress = root, progress
        self.findings = Findings()
        self.owners: Mapping[str, str] = {}
        self.manifest_intact, self.foreign = True, False
        self.bytes = 0

    def note(self, file: str) -> Note:
        """A function that notes damage of this file."""
        return lambda what, sample: self.findings.add(file, what, sample)

    def use(self, name: str, read: Callable[[IO[bytes]], _Result]) -> _Result | None:
        """What ``read`` makes of a file, or None (and a note) if it is missing or cannot be read."""
        stem, _, kind = name.rpartition(".")
        foreign = self.foreign and kind in ("tar", "parquet") and layout.is_shard(stem, foreign=True)
        if not layout.is_own_file(name) and not foreign:
            return None
        self._progress(name)
        try:
            with open_regular(self.root / name) as file:
                result = read(file)
                self.bytes += file.tell()
                return result
        except FileNotFoundError:
            self.findings.add(name, "is missing")
        except OSError as error:
            self.findings.add(name, f"cannot be read ({error.strerror})")
        return None

    def intact(self, name: str, sha256: str) -> bool:
        """Whether a file is there and has this digest (hex); notes it if not."""
        found = self.use(name, lambda file: hashlib.file_digest(file, "sha256").hexdigest())  # type: ignore[arg-type]
        if found is not None and found != sha256 and not self.swapped(name, found):
            self.findings.add(name, self.changed())
        return found == sha256

    def swapped(self, name: str, sha256: str) -> bool:
        """Whether a file has the digest that belongs to another; notes it if so."""
        owner = self.owners.get(sha256, name)
        if owner != name:
            self.findings.add(name, f"holds the bytes of {owner}")
        return owner != name

    def changed(self) -> str:
        """How to say that a digest is wrong."""
        suffix = "" if self.manifest_intact else " (which is damaged itself)"
        return f"its sha256 is not that of the manifest{suffix}: its bytes were changed"
