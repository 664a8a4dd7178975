"""An item: what the plan will decide to make one sample of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shardforge.shards.catalogue import Reason

Label = str | int | float | tuple[str | int | float, ...] | None
"""A class (a word or an integer), several classes, a number, several numbers, or none.

Raw, as the source writes it: text sources (csv, tsv, txt, ``.cls``, folder names) give words even for numbers;
parquet and JSON keep their types. With several label columns there is one value per column, "" where it is empty.
"""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file an item is made of.

    Attributes:
        path: POSIX path relative to the source folder, as the file system has it (undecodable bytes kept by
            ``surrogateescape``).
        size: bytes.
        mtime_ns: modification time; tells whether inputs changed, never part of a dataset's identity.
    """

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Item:
    """One candidate sample, described without reading any pixel.

    Attributes:
        source: name of the main file, relative to the source folder, NFC-normalised and valid Unicode. No two files
            have the same; only several rows of a table that name one file, and frames of one file, share it. A
            table's path as it stands there, if it leads outside.
        files: field → file; the main file has the field ``image``, sidecars their own (``mask.png``, ``json``,
            ``txt``). Without ``image`` where the file that a table names is missing or outside.
        label: see :data:`Label`.
        group: what must stay in one split (a patient), or None.
        split: the split the source itself names, or None.
        key: the user's own key, or None.
        caption: text for the ``txt`` member, or None; it goes before a ``txt`` file.
        columns: further columns of the user's table, None where a cell is empty.
        problem: why the item fails already, or None; ``detail`` is for the log.
        frame, frames: of ``frames`` items that the main file makes, this is number ``frame``.
        alias, group_alias: what stands for ``source`` and ``group`` wherever others can read it, or None.
        crop: what to cut out of a DICOM image: ``none``, ``breast`` or ``ultrasound``.
        same_as: :attr:`name` of the item that is kept in place of this one, or None.
    """

    source: str
    files: Mapping[str, SourceFile]
    label: Label = None
    group: str | None = None
    split: str | None = None
    key: str | None = None
    caption: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    problem: Reason | None = None
    detail: str = ""
    frame: int = 0
    frames: int = 1
    alias: str | None = None
    group_alias: str | None = None
    crop: str = "none"
    same_as: str | None = None

    @property
    def shown(self) -> str:
        """The source's name for parquet, logs and keys."""
        return self.source if self.alias is None else self.alias

    @property
    def name(self) -> str:
        """What tells this item from others of the source (but for rows of a table that name one file)."""
        return frame_name(self.source, self.frame)


def frame_name(source: str, frame: int) -> str:
    """The name of a frame; the first has that of the file."""
    return f"{source}\0{frame}" if frame else source


@dataclass(frozen=True, slots=True)
class UnknownFile:
    """A file (or link, or pipe) that became no item: its :func:`~shardforge.sources.names.source_name` and why it was
    left out."""

    path: str
    why: str


@dataclass(slots=True)
class Scan:
    """The raw data of a build.

    Attributes:
        layout: how the source is laid out, for people: ``class folders``, ``split folders`` (of class folders),
            ``labels list``, ``table items.csv``, ``flat folder``, …
        items: sorted by source, by code point; rows that name one file in the table's order.
        unknown: what became no item, sorted by path.
        columns: the user's own columns, in order, with the type of all their values.
        splits_declared: whether the source names splits.
        notes: decisions and oddities that people should see.
        hidden: columns for conditions alone, which rows are not to have.
    """

    layout: str
    items: list[Item]
    unknown: list[UnknownFile]
    columns: Mapping[str, pa.DataType]
    splits_declared: bool
    notes: list[str]
    hidden: frozenset[str] = frozenset()
