"""Decides everything before touching pixels: every item's split, key, shard and position.

From here on nothing depends on timing, on the number of workers, or on the engine.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from shardforge.compile.annotations import well_formed
from shardforge.compile.columns import user_columns
from shardforge.compile.duplicates import Duplicates, drop_all_but_first, duplicate_warnings, joined_groups
from shardforge.compile.fields import missing_field, plan_fields, required_fields
from shardforge.compile.filters import excluded_by_where
from shardforge.compile.inputs import InputDigests, digest_inputs
from shardforge.compile.keys import assign_keys
from shardforge.compile.labels import Labelling, label_items, strata
from shardforge.compile.planned_item import PlannedShard
from shardforge.compile.published_recipe import published_recipe
from shardforge.compile.split import freeze, hash_split, keyed_hash, stratified_split
from shardforge.errors import UsageError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import FILTERS, SKIPS, Reason
from shardforge.shards.layout import shard_name
from shardforge.shards.manifest import FieldInfo, ImageField, LabelInfo, Manifest
from shardforge.shards.metadata import label_types, own_columns
from shardforge.sources.item import Item
from shardforge.sources.scan import Scan

FILES = pa.list_(pa.struct([("field", pa.string()), ("path", pa.binary()), ("size", pa.int64())]))
"""How the plan names an item's files; paths are bytes because file systems do not promise Unicode."""

_SHARDS, _SHARED_FROM = 8, 64
"""A split has at least so many shards, if each of them then has at least so many items."""


@dataclass(frozen=True)
class Draft:
    """The plan but for its cutting into shards, which needs to know how large samples come out.

    Attributes:
        rows: one row per item in final order, with the columns that are known before any pixel is read.
        user: schema of the user's own columns among them.
        splits: split → number of items, in plan order.
        groups: split → digests of its groups, where they are frozen.
        balance: class name → split → items that are not filtered already; empty unless labels are classes.
        annotations: ``boxes`` or ``keypoints`` → the column for them; the user's own has ``_original`` appended.
        privacy: as in the manifest.
        identity: the recipe, as the manifest has it.
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
    annotations: dict[str, str]
    privacy: dict[str, str]
    identity: dict[str, Any]

    @property
    def image_field(self) -> ImageField:
        return cast(ImageField, next(name for name, info in self.fields.items() if info.kind in ("image", "volume")))


def draft(
    scan: Scan,
    recipe: Recipe,
    duplicates: Duplicates | None = None,
    conceal: Callable[[str], str] | None = None,
    privacy: Mapping[str, str] | None = None,
) -> Draft:
    """Plans the items of a scan.

    Args:
        duplicates: identical files among the items, if the recipe asks for them.
        conceal: what stands for names of files and groups in digests that others can read; None: they themselves.
        privacy: as in the manifest.

    Raises:
        UsageError: a split that comes out empty, classes that the recipe does not know, a format that cannot be
            kept, a condition that cannot be judged, and other requests the source cannot meet.
    """
    items = scan.items
    duplicates = duplicates or Duplicates()
    digests = digest_inputs(items, conceal)
    digests = replace(digests, content=duplicates.digest(digests.content))
    from_folders = scan.layout in ("class folders", "split folders")
    labelling = label_items(items, recipe, from_folders=from_folders)
    excluded = [False] * len(items)
    if recipe.filters.where is not None:
        excluded = excluded_by_where(recipe.filters.where, scan, recipe, labelling)
        # Classes, and whether labels are numbers, are a matter of the items that remain.
        kept = [replace(item, label=None) if out else item for item, out in zip(items, excluded, strict=True)]
        labelling = label_items(kept, recipe, from_folders=from_folders)
    fields = plan_fields([item for item, out in zip(items, excluded, strict=True) if not out], recipe, labelling.info)
    groups = joined_groups(items, duplicates)
    splits, frozen = _split(items, labelling, recipe, scan.splits_declared, groups, excluded, conceal, privacy or {})
    order = _order(items, splits, recipe)
    keys, key_problems = assign_keys(items, order, recipe, fields, excluded)
    required = required_fields(fields, recipe, labelling.info)
    firm = [
        Reason.FILTERED_WHERE if out and item.problem not in SKIPS else item.problem
        for item, out in zip(items, excluded, strict=True)
    ]
    problems = [
        own or key_problem or label_problem or missing_field(item, required)
        for item, own, key_problem, label_problem in zip(items, firm, key_problems, labelling.problems, strict=True)
    ]
    dropped: dict[int, int] = {}
    if recipe.duplicates == "first":
        usable = [not problem for problem in problems]
        for i in (i for numbers in duplicates.sets for i in numbers):
            usable[i] = usable[i] and well_formed(items[i].columns, recipe)
        dropped = drop_all_but_first(duplicates, usable, [not own for own in firm])
        problems = [Reason.DUPLICATE if i in dropped else problem for i, problem in enumerate(problems)]
    copied: dict[int, int] = {}
    copies = {i: item.same_as for i, item in enumerate(items) if item.same_as is not None}
    if copies:
        numbers_of = {item.name: i for i, item in enumerate(items)}
        copied = {i: numbers_of[name] for i, name in copies.items() if name in numbers_of}
    annotations, user, renamed = user_columns(items, scan.columns, own_columns(list(fields)), recipe, scan.hidden)
    captions = pa.array([item.caption for item in items], pa.string())
    if captions.null_count < len(captions):
        user["caption"] = captions
    label_type, name_type = label_types(labelling.info)
    places = pa.array(order, pa.int64())
    columns: dict[str, pa.Array] = {
        "key": pa.array([keys[i] for i in order], pa.string()),
        "source": pa.array([items[i].shown for i in order], pa.string()),
        "frame": pa.array([items[i].frame for i in order], pa.int32()),
        "frames": pa.array([items[i].frames for i in order], pa.int32()),
        "group": pa.array([items[i].group_alias or items[i].group for i in order], pa.string()),
        "split": pa.array([splits[i] for i in order], pa.string()),
        "label": pa.array([labelling.values[i] for i in order], label_type),
        "label_name": pa.array([labelling.names[i] for i in order], name_type),
        "problem": pa.array([problems[i] for i in order], pa.string()),
        "detail": pa.array([items[i].detail for i in order], pa.string()),
        "duplicate_of": pa.array(
            [None if (same := dropped.get(i, copied.get(i))) is None else keys[same] for i in order], pa.string()
        ),
        "planned_sha256": pa.array([duplicates.hashes.get(i) for i in order], pa.string()),
        "caption": captions.take(places),
        "crop": pa.array([items[i].crop for i in order], pa.string()),
        "cross_check": pa.array(_chosen(items, problems, recipe), pa.bool_()).take(places),
        "files": pa.array([_files(items[i]) for i in order], FILES),
        **{name: column.take(places) for name, column in user.items()},
    }
    counts = Counter(splits)
    present = sorted(counts, key=lambda name: (name != "train", name))
    counted = [problem not in FILTERS | SKIPS for problem in problems]
    balance = _balance(labelling, splits, counted) if labelling.info.kind in ("class", "multi") else {}
    told_labels = labelling.values if labelling.info.kind == "number" else labelling.names
    return Draft(
        recipe=recipe,
        rows=pa.table(columns),
        user=pa.schema([(name, column.type) for name, column in user.items()]),
        fields=fields,
        label=labelling.info,
        classes=labelling.classes,
        splits={name: counts[name] for name in present},
        groups=frozen,
        balance=balance,
        inputs=digests,
        layout=scan.layout,
        notes=(
            f"labels: {labelling.info.kind} ({labelling.note})",
            *scan.notes,
            *renamed,
            *_told_filters(recipe, duplicates, firm.count(Reason.FILTERED_WHERE), len(dropped)),
        ),
        warnings=(
            *_one_split_labels(balance, present),
            *duplicate_warnings(items, duplicates, told_labels, splits),
        ),
        annotations=annotations,
        privacy=dict(privacy or {}),
        identity=published_recipe(recipe, conceal),
    )


def cut(draft: Draft, sample_bytes: int) -> tuple[PlannedShard, ...]:
    """Cuts the splits into shards of about ``shard_size`` bytes and at most ``shard_samples`` items.

    A split's shards differ by one item at most. Small splits are cut into more shards than their size asks for, as
    long as these are not tiny: a shard is what builders and sequential readers share out among workers.

    Args:
        sample_bytes: what an item takes in a tar on average, headers included.
    """
    most = max(1, min(draft.recipe.shard_samples, draft.recipe.shard_size // max(1, sample_bytes)))
    shards, start = [], 0
    for split, items in draft.splits.items():
        count = max(-(-items // most), min(_SHARDS, items // _SHARED_FROM), 1)
        bounds = [start + items * number // count for number in range(count + 1)]
        for number, (low, high) in enumerate(pairwise(bounds)):
            shards.append(PlannedShard(shard_name(split, number), split, low, high))
        start += items
    return tuple(shards)


def _split(
    items: Sequence[Item],
    labelling: Labelling,
    recipe: Recipe,
    declared: bool,
    groups: Sequence[str],
    excluded: Sequence[bool],
    conceal: Callable[[str], str] | None,
    privacy: Mapping[str, str],
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """The split of every item, and the frozen groups (stratified only). Excluded items fill no split."""
    by = recipe.split_by
    if declared and by == "auto" and recipe.split is not None:
        raise UsageError(
            "the source names its own splits, and --split asks for others",
            todo="Drop --split, or add --split-by hash (or stratified) to ignore the source's.",
        )
    if by == "source" and not declared:
        raise UsageError("split_by source: the source names no splits")
    if declared and by in ("auto", "source"):
        missing = [item.shown for item in items if item.split is None]
        if missing:
            raise UsageError(f"{len(missing)} items have no split in the source ({missing[0]}, for one)")
        return [item.split or "" for item in items], {}
    if recipe.split is None:
        return ["train"] * len(items), {}
    kept = [i for i, out in enumerate(excluded) if not out]
    if by == "stratified":
        frozen = {} if recipe.split_from is None else _frozen(Path(recipe.split_from), privacy)
        labels = strata(labelling)
        chosen = stratified_split(
            [groups[i] for i in kept], [labels[i] for i in kept], recipe.seed, recipe.split, frozen, conceal
        )
        frozen_groups = freeze(chosen.items(), conceal)
        splits = [chosen.get(group) or hash_split(group, recipe.seed, recipe.split) for group in groups]
    else:
        splits = [hash_split(group, recipe.seed, recipe.split) for group in groups]
        frozen_groups = {}
    filled = {splits[i] for i in kept}
    for name, share in recipe.split.items():
        if name not in filled:
            count = len({groups[i] for i in kept})
            raise UsageError(
                f"the split {name!r} ({share} of {count:,} group{'s' * (count != 1)}) comes out empty",
                todo="Ask for a larger share, or use --split-by stratified, which fills every split it can."
                if by != "stratified"
                else "There are fewer groups than splits.",
            )
    return splits, frozen_groups


def _frozen(root: Path, privacy: Mapping[str, str]) -> dict[str, str]:
    manifest = Manifest.read(root)
    if dict(manifest.privacy) != dict(privacy):
        raise UsageError(
            "was built with another identity key, so none of its groups would be recognised",
            where=root,
            todo="Name that one with --key-file.",
        )
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


def _chosen(items: Sequence[Item], problems: Sequence[Reason | None], recipe: Recipe) -> list[bool]:
    """Which items are decoded twice: so many as the recipe says, by a keyed hash of their names."""
    good = [i for i, problem in enumerate(problems) if problem is None]
    wanted = recipe.dicom.cross_check if recipe.kind == "dicom" else 0
    chosen = set(nsmallest(wanted, good, key=lambda i: keyed_hash(recipe.seed, "cross-check", items[i].name)))
    return [i in chosen for i in range(len(items))]


def _files(item: Item) -> list[dict[str, Any]]:
    return [
        {"field": field, "path": os.fsencode(file.path), "size": file.size}
        for field, file in sorted(item.files.items())
    ]


def _told_filters(recipe: Recipe, duplicates: Duplicates, excluded: int, dropped: int) -> Iterable[str]:
    if excluded:
        yield f"where: {excluded:,} item{'s' * (excluded != 1)} filtered"
    if recipe.dedup == "bytes":
        many = sum(map(len, duplicates.sets))
        what = f"{dropped:,} dropped" if recipe.duplicates == "first" else "all kept, each set in one split"
        yield f"dedup: {many:,} items in {len(duplicates.sets):,} sets of identical files; {what}"


def _balance(labelling: Labelling, splits: Sequence[str], counted: Sequence[bool]) -> dict[str, dict[str, int]]:
    balance: dict[str, Counter[str]] = {name: Counter() for name in labelling.classes}
    for names, split, counts in zip(labelling.names, splits, counted, strict=True):
        for name in [names] if isinstance(names, str) else names or []:
            balance[name][split] += counts
    return {name: dict(counts) for name, counts in balance.items()}


def _one_split_labels(balance: Mapping[str, Mapping[str, int]], splits: Sequence[str]) -> Iterable[str]:
    if len(splits) < 2:
        return
    for split in splits:
        lonely = [name for name, counts in balance.items() if set(counts) == {split}]
        if lonely:
            shown = ", ".join(lonely[:5]) + (", …" if len(lonely) > 5 else "")
            yield f"{len(lonely)} of {len(balance)} labels appear in the split {split!r} only: {shown}"
