"""Which column of a table says which items a row is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardforge.errors import UsageError
from shardforge.sources.dicom_labels.ids import identifier
from shardforge.sources.dicom_labels.matching import Found, Matcher
from shardforge.sources.dicom_labels.options import JoinOptions, Key
from shardforge.sources.tables.column import Table

_NAMES: dict[Key, tuple[str, ...]] = {
    "sop": ("sopinstanceuid", "sopuid", "instanceuid", "imageuid", "dicomid", "imageid"),
    "path": ("path", "filepath", "imagepath", "dicompath", "file", "filename", "image", "imageindex", "name"),
    "series": ("seriesinstanceuid", "seriesuid", "seriesid", "series"),
    "study": ("studyinstanceuid", "studyuid", "studyid", "study"),
    "patient": ("patientid", "patient", "subjectid", "subject"),
}
_SLICE_NAMES = ("slice", "sliceindex", "slicenumber", "sliceno", "sliceidx")
_LAST_RESORT = ("id", "uid")
"""May be anything, so looked at last: a SOP instance UID or the name of a file."""
_IDENTIFIERS = frozenset(name for key in ("sop", "series", "study", "patient") for name in _NAMES[key]) | {
    "patientname",
    "patientbirthdate",
    "accessionnumber",
    "accession",
    "otherpatientids",
    "mrn",
    "uid",
}

_TOLD: dict[Key, str] = {
    "sop": "SOP instance UIDs or names of files",
    "series": "series instance UIDs",
    "study": "study instance UIDs",
    "patient": "patient IDs",
    "slice": "patient IDs and slice numbers",
    "path": "paths",
}


@dataclass(frozen=True)
class KeyColumns:
    """What a row names, and where.

    Attributes:
        places: of the column; for ``slice``, of patients and of slice numbers.
        long: a row is about one class of an image, the identifier ending in ``_`` and its name.
    """

    key: Key
    places: tuple[int, ...]
    long: bool = False

    def words(self, cells: Sequence[Any]) -> tuple[str, ...]:
        """A row's identifier, still with its class."""
        return tuple(identifier(cells[place]) for place in self.places)

    def find(self, words: Sequence[str], matcher: Matcher) -> Found:
        """The items that a row names."""
        if not self.long:
            return matcher.find(self.key, words)
        stem, name = split_long(words[0])
        # A number after the last underscore counts files, say; classes have names.
        return matcher.find(self.key, (stem,)) if name and not name.isdecimal() else Found()

    def told(self, columns: Sequence[str]) -> str:
        """For people."""
        named = " and ".join(repr(columns[place]) for place in self.places)
        return f"{_TOLD[self.key]}{', each with a class,' if self.long else ''} from {named}"


def fold(name: str) -> str:
    """A column's name without what people write differently: ``SOP_Instance UID`` is ``sopinstanceuid``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def split_long(word: str) -> tuple[str, str]:
    """``ID_0002081b6_any`` as the identifier ``ID_0002081b6`` and the class ``any`` (RSNA's long form)."""
    stem, _, name = word.rpartition("_")
    return stem, name


def is_identifier(name: str) -> bool:
    """Whether a column's name says that it identifies patients or their files."""
    return fold(name) in _IDENTIFIERS


def choose_key(table: Table, options: JoinOptions, matcher: Matcher) -> KeyColumns:
    """The most specific of the columns that are called like a key and name at least one item.

    Raises:
        UsageError: a column that is asked for is not there, no column is called like a key, or none names an item.
    """
    candidates = _candidates(table, options)
    if not candidates:
        raise UsageError(
            f"no column tells which items the rows are about; its columns: {', '.join(table.columns)}",
            where=table.where,
            todo="Name what it holds (sop, series, study, patient, slice or path) and the column.",
        )
    matching: set[KeyColumns] = set()
    for _, cells in table.rows():
        for candidate in candidates:
            if candidate not in matching and candidate.find(candidate.words(cells), matcher).items:
                matching.add(candidate)
        if candidates[0] in matching:
            break
    chosen = next((candidate for candidate in candidates if candidate in matching), None)
    if chosen is None:
        looked = "; ".join(dict.fromkeys(candidate.told(table.columns) for candidate in candidates))
        raise UsageError(
            f"none of its rows names an image of the source (looked at: {looked})",
            where=table.where,
            todo="Name what it holds (sop, series, study, patient, slice or path) and the column.",
        )
    return chosen


def _candidates(table: Table, options: JoinOptions) -> list[KeyColumns]:
    """In the order in which they are preferred: what names less goes first, rows of one class last."""
    folded = [fold(name) for name in table.columns]
    if options.key_columns:
        return _named(table, options)
    found = {
        key: place
        for key, names in _NAMES.items()
        if (place := next((folded.index(name) for name in names if name in folded), None)) is not None
    }
    number = next((folded.index(name) for name in _SLICE_NAMES if name in folded), None)
    last = next((folded.index(name) for name in _LAST_RESORT if name in folded), None)
    candidates = [KeyColumns("sop", (found["sop"],))] if "sop" in found else []
    if number is not None and "patient" in found:
        candidates.append(KeyColumns("slice", (found["patient"], number)))
    candidates += [KeyColumns(key, (place,)) for key, place in found.items() if key != "sop"]
    if last is not None:
        candidates.append(KeyColumns("sop", (last,)))
    candidates += [KeyColumns("sop", key.places, long=True) for key in candidates if key.key == "sop"]
    return [key for key in candidates if options.key in (None, key.key)]


def _named(table: Table, options: JoinOptions) -> list[KeyColumns]:
    for name in options.key_columns:
        if name not in table.columns:
            raise UsageError(f"has no column {name!r}; its columns: {', '.join(table.columns)}", where=table.where)
    wanted = 2 if options.key == "slice" else 1
    if options.key is None or len(options.key_columns) != wanted:
        raise UsageError(
            f"{len(options.key_columns)} key columns for the key {options.key or 'of no kind'}",
            where=table.where,
            todo="Say what they hold: slice takes two columns (patient, slice number), every other key one.",
        )
    named = KeyColumns(options.key, tuple(table.columns.index(name) for name in options.key_columns))
    return [named, KeyColumns("sop", named.places, long=True)] if options.key == "sop" else [named]
