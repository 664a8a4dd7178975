"""Decides everything before touching pixels: every item's split, key, shard and position.

From here on nothing depends on timing, on the number of workers, or on the engine.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, cast

import pyarrow as pa

from shardforge.compile.inputs import InputDigests, digest_inputs
from shardforge.compile.labels import Labelling, label_items, strata
from shardforge.compile.split import freeze, hash_split, keyed_hash, stratified_split
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.layout import shard_name
from shardforge.shards.manifest import FieldInfo, FieldKind, ImageField, LabelInfo, Manifest
from shardforge.shards.metadata import label_types, own_columns
from shardforge.shards.tar import MAX_NAME, is_key
from shardforge.sources.item import Item
from shardforge.sources.scan import Scan

FILES = pa.list_(pa.struct([("field", pa.string()), ("path", pa.binary()), ("size", pa.int64())]))
"""How the plan names an item's files; paths are bytes because file systems do not promise Unicode."""

_KEEP = {"jpg": "jpg", "jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "png": "png", "webp": "webp"}
_SIDECAR_KINDS: dict[str, FieldKind] = {"json": "json", "txt": "text", "png": "mask", "npy": "array"}
_MAX_STEM = 60


@dataclass(frozen=True)
class PlannedShard:
    """One shard task: rows ``start`` to ``stop`` of the plan."""

    name: str
    split: str
    start: int
    stop: int


@dataclass(frozen=True)
class Draft:
    """The plan but for its cutting into shards, which needs to know how large samples come out.

    Attributes:
        rows: one row per item in final order, with the columns that are known before any pixel is read.
        user: schema of the user's own columns among them.
        splits: split → number of items, in plan order.
        groups: split → digests of its groups, where they are frozen.
        balance: class name → split → items; empty unless labels are classes.
        notes, warnings: for people.
    """

    recipe: Recipe
    rows: pa.Table
    user: pa.Schema
    fields: dict[str, FieldInfo]
    label: LabelInfo
    classes: dict[str, int]
    splits: dict[str, int]
    groups: dict[str, tuple[str, ...]]
    balance: dict[str, dict[str, int]]
    inputs: InputDigests
    layout: str
    notes: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def image_field(self) -> ImageField:
        return cast(ImageField, next(name for name, info in self.fields.items() if info.kind == "image"))


def draft(scan: Scan, recipe: Recipe) -> Draft:
    """Plans the items of a scan.

    Raises:
        UsageError: a split that comes out empty, classes that the recipe does not know, a format that cannot be
            kept, and other requests the source cannot meet.
    """
    items = scan.items
    digests = digest_inputs(items)
    labelling = label_items(items, recipe, from_folders=scan.layout in ("class folders", "split folders"))
    fields = _fields(items, recipe, labelling.info)
    splits, groups = _split(items, labelling, recipe, scan.splits_declared)
    order = _order(items, splits, recipe)
    keys, key_problems = _keys(items, order, recipe, fields)
    required = _required(fields, recipe, labelling.info)
    problems = [
        item.problem or key_problem or label_problem or _missing_field(item, required)
        for item, key_problem, label_problem in zip(items, key_problems, labelling.problems, strict=True)
    ]
    user, renamed = _user_columns(items, scan.columns, own_columns(list(fields)))
    captions = pa.array([item.caption for item in items], pa.string())
    if captions.null_count < len(captions):
        user["caption"] = captions
    label_type, name_type = label_types(labelling.info)
    columns: dict[str, pa.Array] = {
        "key": pa.array([keys[i] for i in order], pa.string()),
        "source": pa.array([items[i].source for i in order], pa.string()),
        "frame": pa.array([items[i].frame for i in order], pa.int32()),
        "frames": pa.array([items[i].frames for i in order], pa.int32()),
        "group": pa.array([items[i].group for i in order], pa.string()),
        "split": pa.array([splits[i] for i in order], pa.string()),
        "label": pa.array([labelling.values[i] for i in order], label_type),
        "label_name": pa.array([labelling.names[i] for i in order], name_type),
        "problem": pa.array([problems[i] for i in order], pa.string()),
        "detail": pa.array([items[i].detail for i in order], pa.string()),
        "caption": captions.take(pa.array(order)),
        "files": pa.array([_files(items[i]) for i in order], FILES),
        **{name: column.take(pa.array(order)) for name, column in user.items()},
    }
    counts = Counter(splits)
    present = sorted(counts, key=lambda name: (name != "train", name))
    balance = _balance(labelling, splits) if labelling.info.kind in ("class", "multi") else {}
    return Draft(
        recipe=recipe,
        rows=pa.table(columns),
        user=pa.schema([(name, column.type) for name, column in user.items()]),
        fields=fields,
        label=labelling.info,
        classes=labelling.classes,
        splits={name: counts[name] for name in present},
        groups=groups,
        balance=balance,
        inputs=digests,
        layout=scan.layout,
        notes=(f"labels: {labelling.info.kind} ({labelling.note})", *scan.notes, *renamed),
        warnings=tuple(_one_split_labels(balance, present)),
    )


def cut(draft: Draft, sample_bytes: int) -> tuple[PlannedShard, ...]:
    """Cuts the splits into shards of about ``shard_size`` bytes and at most ``shard_samples`` items.

    A split's shards differ by one item at most.

    Args:
        sample_bytes: what a sample takes in a tar, headers included.
    """
    most = max(1, min(draft.recipe.shard_samples, draft.recipe.shard_size // max(1, sample_bytes)))
    shards, start = [], 0
    for split, items in draft.splits.items():
        count = -(-items // most)
        bounds = [start + items * number // count for number in range(count + 1)]
        for number, (low, high) in enumerate(pairwise(bounds)):
            shards.append(PlannedShard(shard_name(split, number), split, low, high))
        start += items
    return tuple(shards)


def shard_rows(draft: Draft, shard: PlannedShard) -> pa.RecordBatch:
    """A shard's part of the plan as one batch, with its ``shard`` and ``position`` columns."""
    part = draft.rows.slice(shard.start, shard.stop - shard.start)
    part = part.append_column("shard", pa.array([shard.name] * part.num_rows, pa.string()))
    part = part.append_column("position", pa.array(range(part.num_rows), pa.int32()))
    return part.combine_chunks().to_batches()[0]


def _fields(items: Sequence[Item], recipe: Recipe, label: LabelInfo) -> dict[str, FieldInfo]:
    image = _kept_format(items) if recipe.format == "keep" else recipe.format
    fields = {image: FieldInfo("image")}
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
    if label.kind in ("multi", "number"):
        fields["json"] = FieldInfo("json")
    return dict(sorted(fields.items()))


def _sidecars(item: Item) -> Iterable[str]:
    names = {name for name in item.files if name != "image"}
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


def _split(
    items: Sequence[Item], labelling: Labelling, recipe: Recipe, declared: bool
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """The split of every item, and the frozen groups (stratified only)."""
    by = recipe.split_by
    if declared and by == "auto" and recipe.split is not None:
        raise UsageError(
            "the source names its own splits, and --split asks for others",
            todo="Drop --split, or add --split-by hash (or stratified) to ignore the source's.",
        )
    if by == "source" and not declared:
        raise UsageError("split_by source: the source names no splits")
    if declared and by in ("auto", "source"):
        missing = [item.source for item in items if item.split is None]
        if missing:
            raise UsageError(f"{len(missing)} items have no split in the source ({missing[0]}, for one)")
        return [item.split or "" for item in items], {}
    if recipe.split is None:
        return ["train"] * len(items), {}
    groups = [item.source if item.group is None else f"group\0{item.group}" for item in items]
    if by == "stratified":
        frozen = {} if recipe.split_from is None else _frozen(Path(recipe.split_from))
        chosen = stratified_split(groups, strata(labelling), recipe.seed, recipe.split, frozen)
        splits = [chosen[group] for group in groups]
        frozen_groups = freeze(zip(groups, splits, strict=True))
    else:
        splits = [hash_split(group, recipe.seed, recipe.split) for group in groups]
        frozen_groups = {}
    for name, share in recipe.split.items():
        if name not in splits:
            count = len(set(groups))
            raise UsageError(
                f"the split {name!r} ({share} of {count:,} group{'s' * (count != 1)}) comes out empty",
                todo="Ask for a larger share, or use --split-by stratified, which fills every split it can."
                if by != "stratified"
                else "There are fewer groups than splits.",
            )
    return splits, frozen_groups


def _frozen(root: Path) -> dict[str, str]:
    manifest = Manifest.read(root)
    if not manifest.groups:
        raise UsageError("was not built with --split-by stratified, so no assignment is frozen in it", where=root)
    return {digest: split for split, digests in manifest.groups.items() for digest in digests}


def _order(items: Sequence[Item], splits: Sequence[str], recipe: Recipe) -> list[int]:
    """Item numbers in final order: split by split; shuffled by a keyed hash of the name, or as sorted.

    A hash per item, not one permutation: further data leaves the relative order of what was there, and no
    random generator's stream is relied upon.
    """
    place = [keyed_hash(recipe.seed, "shuffle", item.name) for item in items] if recipe.shuffle else range(len(items))
    return sorted(range(len(items)), key=lambda i: (splits[i] != "train", splits[i], place[i], i))


def _keys(
    items: Sequence[Item], order: Sequence[int], recipe: Recipe, fields: Mapping[str, FieldInfo]
) -> tuple[list[str | None], list[Reason | None]]:
    """The key of every item and, where users bring their own, what is wrong with it."""
    keys: list[str | None] = [None] * len(items)
    problems: list[Reason | None] = [None] * len(items)
    if not recipe.keys.startswith("column:"):
        for index, i in enumerate(order):
            number = f"{index:09d}"
            keys[i] = number if recipe.keys == "index" else f"{_clean_stem(items[i].source)}-{number}"
        return keys, problems
    longest = MAX_NAME - 1 - max(len(name) for name in fields)
    taken: set[str] = set()
    for i, item in enumerate(items):
        key = item.key if item.key is None or item.frames == 1 else f"{item.key}-{item.frame:05d}"
        if key is None or not is_key(key) or len(key) > longest:
            problems[i] = Reason.BAD_KEY
        elif key in taken:
            problems[i] = Reason.DUPLICATE_KEY
        else:
            taken.add(key)
            keys[i] = key
    return keys, problems


def _clean_stem(source: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", PurePosixPath(source).name.partition(".")[0])[:_MAX_STEM]
    return "x" + stem if stem.startswith("__") or not stem else stem


def _required(fields: Mapping[str, FieldInfo], recipe: Recipe, label: LabelInfo) -> frozenset[str]:
    """Sidecars every item must have; a ``json`` member that only carries labels asks nothing of the source."""
    made = {"json"} if label.kind in ("multi", "number") and recipe.fields.get("json") != "required" else set()
    return frozenset(
        name
        for name, info in fields.items()
        if info.kind in ("mask", "text", "array", "json") and not info.optional and name not in made
    )


def _missing_field(item: Item, required: frozenset[str]) -> Reason | None:
    return Reason.MISSING_FIELD if required - set(_sidecars(item)) else None


def _files(item: Item) -> list[dict[str, Any]]:
    return [
        {"field": field, "path": os.fsencode(file.path), "size": file.size}
        for field, file in sorted(item.files.items())
    ]


def _user_columns(
    items: Sequence[Item], found: Mapping[str, pa.DataType], reserved: Sequence[str]
) -> tuple[dict[str, pa.Array], list[str]]:
    """The user's columns as arrays in item order; a name that the format uses itself gets the prefix ``user_``."""
    taken = {*reserved, "problem", "detail", "caption", "files", "frames"}
    columns: dict[str, pa.Array] = {}
    notes = []
    for name, kind in found.items():
        target = name
        while target in taken:
            target = f"user_{target}"
        if target != name:
            notes.append(f"the table's column {name!r} is kept as {target!r}")
        taken.add(target)
        columns[target] = pa.array([item.columns.get(name) for item in items], kind)
    return columns, notes


def _balance(labelling: Labelling, splits: Sequence[str]) -> dict[str, dict[str, int]]:
    balance: dict[str, Counter[str]] = {name: Counter() for name in labelling.classes}
    for names, split in zip(labelling.names, splits, strict=True):
        for name in [names] if isinstance(names, str) else names or []:
            balance[name][split] += 1
    return {name: dict(counts) for name, counts in balance.items()}


def _one_split_labels(balance: Mapping[str, Mapping[str, int]], splits: Sequence[str]) -> Iterable[str]:
    if len(splits) < 2:
        return
    for split in splits:
        lonely = [name for name, counts in balance.items() if set(counts) == {split}]
        if lonely:
            shown = ", ".join(lonely[:5]) + (", …" if len(lonely) > 5 else "")
            yield f"{len(lonely)} of {len(balance)} labels appear in the split {split!r} only: {shown}"
