"""Files of one folder that share a stem become fields of one sample: ``a.jpg a.json a.txt a.mask.png``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shardforge.sources.item import SourceFile
from shardforge.sources.recognise import image_stem, is_hidden, why_no_image

MASK = "mask.png"
LABEL = "cls"
_KNOWN_ROLES = frozenset({"json", "txt", "npy", LABEL, MASK})

Fields = dict[str, SourceFile]
"""Field → file. ``image`` is the main file; ``cls`` holds a label and never becomes a field of an item."""


class Roles:
    """The name endings that make a file a sidecar: the known ones and those that the recipe declares.

    Args:
        declared: lower-case fields such as ``depth.png``.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._roles = _KNOWN_ROLES | set(declared)
        self._last_parts = {role.rpartition(".")[2] for role in self._roles}

    def split(self, name: str) -> tuple[str, str] | None:
        """``a.b.mask.png`` → (``a.b``, ``mask.png``), by the longest ending that is a role; None without one."""
        if name.rpartition(".")[2].lower() not in self._last_parts:
            return None
        dot = name.find(".", 1)
        while dot >= 0:
            role = name[dot + 1 :].lower()
            if role in self._roles:
                return name[:dot], role
            dot = name.find(".", dot + 1)
        return None


@dataclass(slots=True)
class Siblings:
    """A folder's files, put together.

    Attributes:
        images: one entry per image; a sidecar that two images share stands in both.
        rest: files that belong to no image, and why.
    """

    images: list[Fields] = field(default_factory=list)
    rest: list[tuple[SourceFile, str]] = field(default_factory=list)


def group_siblings(files: Sequence[SourceFile], roles: Roles, root: str) -> Siblings:
    """Puts the files of one folder together.

    Stems are compared exactly, extensions without regard to case. A name's longest role decides: ``a.b.jpg`` is an
    image of its own unless ``b.jpg`` is declared.

    Args:
        files: of one folder, sorted by name.
        root: the source folder; files whose names do not decide are opened below it.
    """
    found = Siblings()
    by_stem: dict[str, list[Fields]] = {}
    sidecars: list[tuple[str, str, SourceFile]] = []
    for file in files:
        name = file.path.rpartition("/")[2]
        role = roles.split(name)
        if role is not None:
            sidecars.append((*role, file))
            continue
        why = why_no_image(name, f"{root}/{file.path}")
        if why is not None:
            found.rest.append((file, why))
            continue
        fields = {"image": file}
        found.images.append(fields)
        by_stem.setdefault(image_stem(name), []).append(fields)
    for stem, role_name, file in sidecars:
        owners = by_stem.get(stem, ())
        if not owners:
            hidden = is_hidden(file.path.rpartition("/")[2])
            found.rest.append((file, "hidden" if hidden else "no image with this name"))
        elif role_name in owners[0]:
            found.rest.append((file, f"{owners[0][role_name].path.rpartition('/')[2]} gives this field already"))
        else:
            for fields in owners:
                fields[role_name] = file
    return found
