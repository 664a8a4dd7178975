"""What folders say: splits and classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shardforge.sources.names import source_name
from shardforge.sources.siblings import Fields

SPLIT_FOLDERS = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing", "eval"})
"""Lower-case names of folders that stand for splits."""
_TRAINING = frozenset({"train", "training"})
IMAGES_FOLDER = "images"
"""Beside a labels list, a folder of this name is no class."""


@dataclass(frozen=True)
class Places:
    """The meaning of the top-level folders.

    Attributes:
        splits: top-level folder → split, its own name in lower case; empty if folders are no splits.
        notes: what looks strange, for people.
    """

    splits: dict[str, str]
    notes: tuple[str, ...] = ()

    def base(self, path: str) -> str:
        """The folder whose subfolders are the classes of ``path``: its split's, or "" for the root."""
        top = path.partition("/")[0]
        return top if top in self.splits and top != path else ""

    def split(self, path: str) -> str | None:
        """The split that the path's folder stands for."""
        base = self.base(path)
        return self.splits[base] if base else None

    def class_folder(self, path: str) -> str | None:
        """The first folder below the base, or None for a file right in it."""
        base = self.base(path)
        below = path[len(base) + 1 :] if base else path
        folder, slash, _ = below.partition("/")
        return folder if slash else None


def find_places(images: Iterable[Fields]) -> Places:
    """Folders are splits if every top-level folder that holds images has a split's name, training among them."""
    paths = (fields["image"].path for fields in images)
    tops = dict.fromkeys(path.partition("/")[0] for path in paths if "/" in path)
    splits = {top: top.lower() for top in tops if top.lower() in SPLIT_FOLDERS}
    if not _TRAINING & set(splits.values()):
        return Places({})
    others = [top for top in tops if top not in splits]
    if not others:
        return Places(splits)
    shown = ", ".join(map(source_name, splits))
    return Places({}, (f"{shown}: not taken as splits, because {source_name(others[0])!r} is no split",))
