"""Everything a source folder holds, and finding it again by the names that tables and lists use."""

from __future__ import annotations

import os.path
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from shardforge.shards.catalogue import Reason
from shardforge.sources.item import SourceFile, UnknownFile
from shardforge.sources.names import source_name
from shardforge.sources.recognise import image_stem
from shardforge.sources.siblings import Fields, Roles, group_siblings
from shardforge.sources.walk import LEAVES_SOURCE, NOT_REGULAR, walk


@dataclass(slots=True)
class Inventory:
    """A source folder's content.

    Attributes:
        root: the folder, absolute and free of links.
        named: the folder as the user named it, absolute.
        images: one entry per image with its sidecars.
        rest: regular files that are neither, and why.
        blocked: links that are not followed, pipes and the like.
        inner_links: links that were followed to another place of the source, which is listed there as well.
    """

    root: str
    named: str
    images: list[Fields] = field(default_factory=list)
    rest: list[tuple[SourceFile, str]] = field(default_factory=list)
    blocked: list[UnknownFile] = field(default_factory=list)
    inner_links: int = 0

    def describe_rest(self) -> str:
        """``12 files, none of them an image (7 .pdf, 5 without extension)``."""
        count = len(self.rest) + len(self.blocked)
        if not count:
            return "it holds no files at all"
        endings = Counter(PurePosixPath(file.path).suffix.lower() for file, _ in self.rest)
        told = [
            f"{number:,} {source_name(ending) or 'without extension'}" for ending, number in endings.most_common(3)
        ]
        told += [f"{number:,} × {why}" for why, number in Counter(thing.why for thing in self.blocked).most_common(3)]
        return f"it holds {count:,} file{'s' * (count > 1)}, none of them an image ({', '.join(told)})"


def take_inventory(root: Path, roles: Roles, follow_symlinks: bool) -> Inventory:
    """Lists and groups everything below ``root``.

    Files in folders whose names begin with a dot (``.ipynb_checkpoints``) are left out, and reported.

    Raises:
        StorageError: something cannot be listed.
    """
    inventory = Inventory(str(root.resolve()), os.path.normpath(root.absolute()))
    for folder in walk(inventory.root, follow_symlinks):
        inventory.blocked += folder.blocked
        inventory.inner_links += folder.inner_links
        if folder.hidden:
            inventory.rest += ((file, "in a hidden folder") for file in folder.files)
            continue
        siblings = group_siblings(folder.files, roles, inventory.root)
        inventory.images += siblings.images
        inventory.rest += siblings.rest
    return inventory


class Finder:
    """Finds the files that a table names.

    A name matches exactly, or else by its NFC form: tables are often written on another system than the files.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._roots = (inventory.root, inventory.named)
        self._blocked = {thing.path: thing.why for thing in inventory.blocked}
        self._files: dict[str, Fields | SourceFile] = {}
        self._other_forms: dict[str, str] = {}
        self._stems: dict[str, list[Fields]] | None = None
        self._images = inventory.images
        for fields in inventory.images:
            for name, file in fields.items():
                self._add(file.path, fields if name == "image" else file)
        for file, _ in inventory.rest:
            self._add(file.path, file)

    def _add(self, path: str, entry: Fields | SourceFile) -> None:
        self._files[path] = entry
        if not path.isascii() and not unicodedata.is_normalized("NFC", path):
            self._other_forms[unicodedata.normalize("NFC", path)] = path

    def relative(self, name: str, bases: Sequence[str]) -> list[str]:
        """Where below the root ``name`` may stand for: one path per base that does not lead outside, "." for the
        root itself.

        Args:
            bases: absolute folders; an absolute ``name`` ignores them.
        """
        found: dict[str, None] = {}
        for base in bases:
            path = os.path.normpath(f"{base}/{name}" if not name.startswith("/") else name)
            for root in self._roots:
                if path == root:
                    found["."] = None
                elif path.startswith(root.rstrip("/") + "/"):
                    found[path[len(root.rstrip("/")) + 1 :]] = None
        return list(found)

    def files(self, path: str) -> Fields | None:
        """The image at this path relative to the root, with its sidecars; any other regular file counts as an image,
        too, since a table says so."""
        entry = self._entry(path)
        return {"image": entry} if isinstance(entry, SourceFile) else entry

    def file(self, path: str) -> SourceFile | None:
        """The one file at this path relative to the root."""
        entry = self._entry(path)
        return entry["image"] if isinstance(entry, dict) else entry

    def images_by_stem(self, path: str) -> Sequence[Fields]:
        """The images that ``path`` names but for their extension."""
        if self._stems is None:
            self._stems = {}
            for fields in self._images:
                folder, slash, name = fields["image"].path.rpartition("/")
                stem = unicodedata.normalize("NFC", folder + slash + image_stem(name))
                self._stems.setdefault(stem, []).append(fields)
        return self._stems.get(unicodedata.normalize("NFC", path), ())

    def _entry(self, path: str) -> Fields | SourceFile | None:
        entry = self._files.get(path)
        if entry is None and not path.isascii():
            normal = unicodedata.normalize("NFC", path)
            entry = self._files.get(normal) or self._files.get(self._other_forms.get(normal, ""))
        return entry

    def why_absent(self, path: str) -> tuple[Reason, str]:
        """Why there is no file at this path relative to the root."""
        above = path
        while above:
            why = self._blocked.get(above)
            if why == LEAVES_SOURCE:
                return Reason.OUTSIDE_SOURCE, why
            if why is not None:
                return (Reason.UNREADABLE if why == NOT_REGULAR else Reason.MISSING_FILE), why
            above = above.rpartition("/")[0]
        return Reason.MISSING_FILE, "no such file in the source folder"
