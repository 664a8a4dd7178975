"""Labels from a table whose rows name instances, series, studies, patients, slices or paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from shardforge.compile.source_options import source_options
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.sections import BoxOptions
from shardforge.sources.dicom.scan import DicomScan
from shardforge.sources.dicom_labels.ids import SliceIds
from shardforge.sources.dicom_labels.join import BOXES, join_labels
from shardforge.sources.dicom_labels.keys import is_identifier
from shardforge.sources.dicom_labels.options import JoinOptions, Key
from shardforge.sources.dicom_labels.pile import Joined
from shardforge.sources.item import Item
from shardforge.sources.scan import demand_labels

_KEYS = ("sop", "series", "study", "patient", "slice", "path")


def label_items_by_table(found: DicomScan, recipe: Recipe) -> Recipe:
    """Gives the items of a scan what the recipe's table says of them.

    Returns:
        The recipe, with the classes and boxes that the table brings.

    Raises:
        UsageError, StorageError: the table cannot be used.
    """
    assert recipe.table is not None
    if recipe.dicom.identifiers == "hash":
        _refuse_identifiers(recipe)
    key, columns = _key(recipe.dicom.label_key)
    options = JoinOptions(
        columns=source_options(recipe),
        key=key,
        key_columns=columns,
        first_slice=recipe.dicom.first_slice if "first_slice" in recipe.dicom.model_fields_set else None,
        multi=recipe.label_kind == "multi",
        uncertain=recipe.dicom.uncertain,
        keep_identifiers=recipe.dicom.identifiers == "keep",
    )
    joined = join_labels(Path(recipe.table), options, [_ids(item, found) for item in found.items])
    found.items = [_merged(item, row) for item, row in zip(found.items, joined.items, strict=True)]
    demand_labels(found.items)
    found.columns = {**found.columns, **joined.columns}
    found.splits_declared = found.splits_declared or joined.splits_declared
    found.notes += joined.notes
    update: dict[str, object] = {}
    if joined.classes is not None and recipe.classes is None:
        update["classes"] = joined.classes
    if BOXES in joined.columns and recipe.boxes is None:
        update["boxes"] = BoxOptions(column=BOXES, format="xyxy")
    return recipe.model_copy(update=update)


def _refuse_identifiers(recipe: Recipe) -> None:
    """What is asked for by name would be stored as it is."""
    keys = recipe.keys.removeprefix("column:") if recipe.keys.startswith("column:") else None
    asked = {"keys": (keys,), "label": recipe.label, "caption": (recipe.caption,)}
    for option, names in asked.items():
        for name in names:
            if name is not None and is_identifier(name):
                raise UsageError(
                    f"{option}: the column {name!r} identifies patients or their images",
                    todo="Choose another column, or keep identifiers with --keep-identifiers.",
                )


def _key(text: str | None) -> tuple[Key | None, tuple[str, ...]]:
    """``slice:patient_id,index`` → the kind of key and its columns."""
    if text is None:
        return None, ()
    kind, _, columns = text.partition(":")
    if kind not in _KEYS:
        raise UsageError(f"label_key: {kind!r} is none of {', '.join(_KEYS)}")
    return cast(Key, kind), tuple(column.strip() for column in columns.split(",")) if columns else ()


def _ids(item: Item, found: DicomScan) -> Sequence[SliceIds]:
    """What tables may call the slices that an item is made of; of a stack, its own slice."""
    whole = [
        file for name, file in item.files.items() if name == "image" or (name[:6] == "slice." and name[6].isdigit())
    ]
    ids = []
    for file in whole:
        header = found.headers.get(file.path)
        if header is None:
            continue
        index = item.columns.get("dicom_slice_index") if len(whole) == 1 else None
        ids.append(
            SliceIds(
                sop=header.sop_instance,
                series=header.series,
                study=header.study,
                patient=header.patient,
                slice_index=index,
                path=file.path,
            )
        )
    return ids


def _merged(item: Item, row: Joined) -> Item:
    problem, detail = (item.problem, item.detail) if item.problem is not None else (row.problem, row.detail)
    return replace(
        item,
        label=row.label,
        group=row.group if row.group is not None else item.group,
        split=row.split,
        key=row.key,
        caption=row.caption,
        columns={**item.columns, **row.columns},
        problem=problem,
        detail=detail,
    )
