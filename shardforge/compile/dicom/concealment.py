"""Takes identities out of listed items: keyed hashes for names, days for dates, nothing for free text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.compile.annotations import wanted_columns
from shardforge.compile.dicom.burned_in_policy import COLUMN
from shardforge.compile.identity_key import KeyFile
from shardforge.compile.listing import Listing
from shardforge.compile.private_map import Original
from shardforge.dicom.allow_list import PROFILE
from shardforge.dicom.day_offset import day_offset, earliest_dates
from shardforge.dicom.privacy import IdentityKey, Kind
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.columns import COLUMN_TYPES, DATES, FREE_TEXT, IDENTIFIERS
from shardforge.sources.dicom.scan import DicomScan
from shardforge.sources.dicom_labels.join import BOX_LABELS, BOXES, UNCERTAIN
from shardforge.sources.item import Item

_KINDS: Mapping[str, Kind] = {
    "dicom_patient": "patient",
    "dicom_study_uid": "study",
    "dicom_series_uid": "series",
    "dicom_sop_uid": "sop",
}

_MADE = (BOXES, BOX_LABELS, UNCERTAIN)
_OWN_WORDS = frozenset((Reason.BAD_GEOMETRY, Reason.BURNED_IN))
"""Reasons whose detail is in fixed words; what is said of other files may quote them."""


def conceal_identities(source: Path, found: DicomScan, recipe: Recipe, key: KeyFile | None) -> Listing:
    """The listing of a DICOM scan.

    With a key, the columns of :data:`IDENTIFIERS` hold hashes, dates become days since the patient's first
    (``…_date`` becomes ``…_day``), columns of free text go, and so do the names of files and groups from everything
    that others can read. Without one, all stays as it is.
    """
    if key is None:
        privacy = {"identifiers": "keep"}
        series = tuple((finding.series, finding) for finding in found.findings)
        return Listing(source, found, recipe, series=series, privacy=privacy)
    names = _Names(key.key)
    first = earliest_dates(
        (header.patient_key, text)
        for header in found.headers.values()
        for text in (header.study_date, header.series_date, header.acquisition_date)
    )
    items = [_concealed(item, found, names, first) for item in found.items]
    columns = {
        _day(name) if name in DATES else name: pa.int32() if name in DATES else kind
        for name, kind in found.columns.items()
        if name not in FREE_TEXT
    }
    unknown = [replace(thing, path=names("source", thing.path)) for thing in found.unknown]
    series = tuple((names("series", finding.series), finding) for finding in found.findings)
    hidden = _hidden(columns, recipe)
    told = [*found.notes, *_told(hidden)]
    concealed = replace(
        found, items=items, columns=columns, unknown=unknown, findings=(), headers={}, hidden=hidden, notes=told
    )
    privacy = {"identifiers": "hash", "key_id": key.key.key_id, "profile": PROFILE}
    return Listing(source, concealed, recipe, key, names.originals(), series, privacy)


def _hidden(columns: Mapping[str, pa.DataType], recipe: Recipe) -> frozenset[str]:
    """Columns of the user's table that the recipe does not name: anything may stand in them."""
    unknown = [name for name in recipe.dicom.columns if name not in columns]
    if unknown:
        raise UsageError(f"columns: the table has no column {unknown[0]!r} that could be taken over")
    roles = wanted_columns(recipe).values()
    known = {*COLUMN_TYPES, *map(_day, DATES), COLUMN, *_MADE, *roles, *recipe.dicom.columns}
    return frozenset(name for name in columns if name not in known)


def _told(hidden: frozenset[str]) -> Iterable[str]:
    if hidden:
        names = ", ".join(sorted(hidden))
        yield f"columns of the table that stay out of the dataset: {names}; --columns names those to take over"


class _Names:
    """Hashes names, and remembers what they stand for."""

    def __init__(self, key: IdentityKey) -> None:
        self._key = key
        self._known: dict[tuple[Kind, str], str] = {}

    def __call__(self, kind: Kind, name: str) -> str:
        found = self._known.get((kind, name))
        if found is None:
            found = self._known[kind, name] = self._key.hash_identifier(kind, name)
        return found

    def originals(self) -> tuple[Original, ...]:
        return tuple(Original(kind, digest, name) for (kind, name), digest in self._known.items())


def _concealed(item: Item, found: DicomScan, names: _Names, first: Mapping[str, date]) -> Item:
    header = found.headers.get(item.files["image"].path)
    reference = None if header is None else first.get(header.patient_key)
    columns: dict[str, Any] = {}
    for name, value in item.columns.items():
        if name in IDENTIFIERS:
            columns[name] = None if value is None else names(_KINDS[name], value)
        elif name in DATES:
            columns[_day(name)] = None if value is None else day_offset(value.replace("-", ""), reference)
        elif name not in FREE_TEXT:
            columns[name] = value
    return replace(
        item,
        columns=columns,
        alias=names("source", item.source),
        group_alias=None if item.group is None else names("group", item.group),
        detail=item.detail if item.problem in _OWN_WORDS else "",
    )


def _day(name: str) -> str:
    return f"{name.removesuffix('_date')}_day"
