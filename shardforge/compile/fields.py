"""Which members the samples of a dataset have, and which of them every item must bring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from shardforge.compile.annotations import wanted_columns
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import FieldInfo, FieldKind, LabelInfo
from shardforge.sources.item import Item

_KEEP = {"jpg": "jpg", "jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "png": "png", "webp": "webp"}
_SIDECAR_KINDS: dict[str, FieldKind] = {"json": "json", "txt": "text", "png": "mask", "npy": "array"}


def plan_fields(items: Sequence[Item], recipe: Recipe, label: LabelInfo) -> dict[str, FieldInfo]:
    """Member → what it is; a sidecar is optional if the recipe says so, or some item lacks it.

    Raises:
        UsageError: two members of one name, or sources of several formats where the format is to be kept.
    """
    image = _kept_format(items) if recipe.format == "keep" else recipe.format
    volume = recipe.kind == "dicom" and recipe.dicom.unit == "volume"
    fields = {image: FieldInfo("volume" if volume else "image")}
    if label.kind == "class":
        fields["cls"] = FieldInfo("class")
    usable = [item for item in items if item.problem is None]
    has: Counter[str] = Counter(name for item in usable for name in _sidecars(item))
    for name in sorted({*has, *recipe.fields}):
        if name in fields:
            raise UsageError(
                f"the sidecar field {name!r} and the dataset's {fields[name].kind} would have the same name",
                todo="Choose another --format.",
            )
        wanted = recipe.fields.get(name)
        optional = wanted == "optional" or (wanted is None and has[name] < len(usable))
        fields[name] = FieldInfo(_SIDECAR_KINDS[name.rpartition(".")[2]], optional)
    if label.kind in ("multi", "number") or wanted_columns(recipe):
        fields["json"] = FieldInfo("json")
    return dict(sorted(fields.items()))


def _sidecars(item: Item) -> Iterable[str]:
    # The slices of a stack or volume are parts of its image.
    names = {name for name in item.files if name != "image" and not name.startswith(("slice.", "spare."))}
    return names | {"txt"} if item.caption is not None else names


def _kept_format(items: Sequence[Item]) -> str:
    """The one image format of all sources, by their names; contents are checked when they are read."""
    found = Counter(PurePosixPath(item.source).suffix.lower().lstrip(".") for item in items if item.problem is None)
    formats = {_KEEP.get(suffix, suffix or "no extension") for suffix in found}
    if len(formats) != 1 or not formats <= set(_KEEP.values()):
        told = ", ".join(f"{count:,} {suffix or 'without extension'}" for suffix, count in found.most_common())
        raise UsageError(
            f"format keep needs sources that are all jpg, all png or all webp; here: {told}",
            todo="One dataset has one image format: choose --format jpg, png or webp.",
        )
    return formats.pop()


def required_fields(fields: Mapping[str, FieldInfo], recipe: Recipe, label: LabelInfo) -> frozenset[str]:
    """Sidecars every item must have; a ``json`` member that carries labels or boxes asks nothing of the source."""
    carries = label.kind in ("multi", "number") or wanted_columns(recipe)
    made = {"json"} if carries and recipe.fields.get("json") != "required" else set()
    return frozenset(
        name
        for name, info in fields.items()
        if info.kind in ("mask", "text", "array", "json") and not info.optional and name not in made
    )


def missing_field(item: Item, required: frozenset[str]) -> Reason | None:
    """Why the item fails for want of a required sidecar, or None."""
    return Reason.MISSING_FIELD if required - set(_sidecars(item)) else None
