"""Multi-frame files that stay open from one frame to the next: reading, hashing and parsing them again for each would
take as many times longer as they have frames."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from shardforge.codecs.dicom.read import DicomFile
from shardforge.compile.planned_item import PlannedItem

_BYTES = 1 << 24
"""Of all files kept beside the latest: the headers of a thousand frames take many times their size once parsed."""
_FILES = 8

Name = tuple[bytes, int]


@dataclass(frozen=True)
class Opened:
    """A file that was read and parsed: its bytes and their sha256 in hex, by field, as items have them."""

    raw: Mapping[str, bytes]
    digests: Mapping[str, str]
    file: DicomFile

    @property
    def size(self) -> int:
        return sum(map(len, self.raw.values()))


class OpenedFiles:
    """The files of which frames were asked for last. Not for several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Name, Opened] = OrderedDict()

    def get(self, item: PlannedItem) -> Opened | None:
        """The item's file if it is open. Otherwise there is room for it afterwards."""
        name = _name(item)
        if name is not None and name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        while self._kept and (len(self._kept) >= _FILES or sum(o.size for o in self._kept.values()) > _BYTES):
            self._kept.popitem(last=False)
        return None

    def keep(self, item: PlannedItem, opened: Opened) -> None:
        """Keeps the item's file, if others may want it."""
        name = _name(item)
        if name is not None:
            self._kept[name] = opened


def _name(item: PlannedItem) -> Name | None:
    """Which file it is: one of several frames that is the item's only file; else None."""
    return item.files["image"] if item.frames > 1 and len(item.files) == 1 else None
