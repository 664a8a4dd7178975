"""Multi-frame files that stay open from one frame to the next: reading, hashing and parsing them again for each would
take as many times longer as they have frames."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.file_bytes import Bytes, FileBytes, Identity
from shardforge.compile.planned_item import PlannedItem

_BYTES = 1 << 24
"""Of all files kept beside the latest: what they take in memory, more or less."""
_FILES = 64
_PARSED = 8
"""So many times its size a header takes once parsed, as far as samples need it."""
_FRAGMENT = 220
"""Bytes that the place of one takes."""
_DIGESTS = 1 << 16

Name = tuple[bytes, int]


@dataclass(frozen=True)
class Opened:
    """A file that was opened and parsed, its bytes, and their sha256 in hex."""

    data: Bytes
    digest: str
    file: DicomFile

    @property
    def memory(self) -> int:
        """Bytes that it takes in memory, more or less."""
        held = 0 if isinstance(self.file.data, FileBytes) else len(self.file.data)
        fragments = sum(map(len, self.file.fragments or ()))
        return held + _PARSED * self.file.pixels.start + _FRAGMENT * fragments

    @property
    def current(self) -> bool:
        """Whether nobody has written into the file since."""
        return not isinstance(self.data, FileBytes) or self.data.unchanged


class OpenedFiles:
    """The files of which frames were asked for last. Not for several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Name, Opened] = OrderedDict()
        self._digests: OrderedDict[Name, tuple[Identity, str]] = OrderedDict()

    def get(self, item: PlannedItem) -> Opened | None:
        """The item's file if it is open. Otherwise there is room for it afterwards."""
        name = _name(item)
        if is_shared(item) and name in self._kept:
            if self._kept[name].current:
                self._kept.move_to_end(name)
                return self._kept[name]
            del self._kept[name]
        while self._kept and (len(self._kept) >= _FILES or sum(o.memory for o in self._kept.values()) > _BYTES):
            self._kept.popitem(last=False)
        return None

    def keep(self, item: PlannedItem, opened: Opened) -> None:
        """Keeps the item's file, if others will want it."""
        if is_shared(item):
            self._kept[_name(item)] = opened

    def digest(self, item: PlannedItem, data: Bytes) -> str:
        """The sha256 of the item's file in hex, computed once as long as nobody writes into it.

        Raises:
            SampleError: ``unreadable``.
        """
        if not isinstance(data, FileBytes):
            return hashlib.sha256(data).hexdigest()
        name = _name(item)
        identity, digest = self._digests.get(name, (None, ""))
        if identity != data.identity:
            digest = data.sha256()
            self._digests[name] = data.identity, digest
            if len(self._digests) > _DIGESTS:
                self._digests.popitem(last=False)
        return digest


def is_shared(item: PlannedItem) -> bool:
    """Whether the item is one of several frames of a file, and that is its only one."""
    return item.frames > 1 and len(item.files) == 1


def _name(item: PlannedItem) -> Name:
    return item.files["image"]
