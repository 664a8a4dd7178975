"""What kind of files a source holds: ordinary images or DICOM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from shardforge.codecs.sniff import sniff
from shardforge.sources.recognise import image_extension, is_hidden, read_first
from shardforge.sources.walk import walk

Kind = Literal["images", "dicom"]
_DICOM_EXTENSIONS = frozenset(("dcm", "dicom", "dic", "ima"))
_ENOUGH = 1000
"""Files that tell the kind; the walk is sorted, so that these are the same each time."""
_ZIP = b"PK\x03\x04"


def find_kind(root: Path, follow_symlinks: bool) -> tuple[Kind, str | None]:
    """What most of the first files are, and a remark for people if they are not all the same.

    Zip archives count as DICOM: of ordinary images none are read.
    """
    found = Counter(_kinds(root, follow_symlinks))
    kind: Kind = "dicom" if found["dicom"] > found["images"] else "images"
    if not (found["dicom"] and found["images"]):
        return kind, None
    return kind, (
        f"the source holds both ordinary images and DICOM ({found['images']:,} and {found['dicom']:,} of the first "
        f"files); it is read as {kind}, --kind decides otherwise"
    )


def _kinds(root: Path, follow_symlinks: bool) -> Iterator[Kind]:
    told = 0
    for folder in walk(str(root.resolve()), follow_symlinks):
        for file in () if folder.hidden else folder.files:
            kind = _kind(root, file.path)
            if kind is not None:
                yield kind
                told += 1
                if told == _ENOUGH:
                    return


def _kind(root: Path, path: str) -> Kind | None:
    name = path.rpartition("/")[2]
    if is_hidden(name):
        return None
    extension = name.rpartition(".")[2].lower()
    if extension in _DICOM_EXTENSIONS:
        return "dicom"
    if image_extension(name) is not None:
        return "images"
    try:
        first = read_first(f"{root}/{path}")
    except OSError:
        return None
    if first.startswith(_ZIP):
        return "dicom" if extension == "zip" else None
    found = sniff(first)
    return None if found is None else "dicom" if found == "dicom" else "images"
