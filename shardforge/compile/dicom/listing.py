"""Lists a DICOM source for a build: items with labels and masks, judged for burned-in text, without identities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shardforge.codecs.limits import Limits
from shardforge.compile.dicom.burned_in_policy import judge_items
from shardforge.compile.dicom.concealment import conceal_identities
from shardforge.compile.dicom.table_labels import label_items_by_table
from shardforge.compile.identity_key import load_or_make
from shardforge.compile.listing import Listing
from shardforge.compile.progress import Reporter
from shardforge.machine import inspect_machine
from shardforge.recipe import Recipe
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.options import DicomSourceOptions
from shardforge.sources.dicom.scan import DicomScan, scan_dicom
from shardforge.sources.item import Item

MASK_FIELD = "mask.png"


def list_dicom(source: Path, out: Path, recipe: Recipe, reporter: Reporter) -> Listing:
    """Lists the items of a DICOM source.

    Raises:
        UsageError, StorageError: the source, a table or the identity key cannot be used.
    """
    key = None
    if recipe.dicom.identifiers == "hash":
        given = recipe.run.key_file
        key = load_or_make(None if given is None else Path(given), (source, out))
        for note in key.notes:
            reporter.say(f"note: {note}")
    found = scan_dicom(source, _source_options(recipe), reporter.say)
    if recipe.dicom.segmentations and recipe.dicom.unit in ("slice", "frame"):
        found.items = _with_masks(found)
    elif recipe.dicom.segmentations and found.segmentations:
        left_out = f"segmentation objects left out: {len(found.segmentations):,}"
        found.notes.append(f"{left_out}; masks are made for slices and frames, not for a {recipe.dicom.unit}")
    if recipe.table is not None:
        recipe = label_items_by_table(found, recipe)
    judge_items(found, recipe.dicom)
    return conceal_identities(source, found, recipe, key)


def _source_options(recipe: Recipe) -> DicomSourceOptions:
    limits = recipe.limits
    return DicomSourceOptions(
        unit=recipe.dicom.unit,
        neighbours=recipe.dicom.neighbours,
        group_by=recipe.dicom.group_by,
        irregular=recipe.dicom.irregular,
        follow_symlinks=recipe.follow_symlinks,
        workers=recipe.run.workers or inspect_machine().cpus,
        limits=Limits(limits.pixels, limits.frames, limits.source_bytes),
    )


def _with_masks(found: DicomScan) -> list[Item]:
    """The items, those that a segmentation was made on with its file; of several the first by UID."""
    by_instance: dict[str, Header] = {}
    several: set[str] = set()
    for segmentation in sorted(found.segmentations, key=lambda header: (header.sop_instance, header.file.path)):
        for instance in segmentation.referenced:
            if by_instance.setdefault(instance, segmentation) is not segmentation:
                several.add(instance)
    if several:
        images = "1 image has" if len(several) == 1 else f"{len(several):,} images have"
        told = f"{images} several segmentations; the first by UID is the mask, the others are left out"
        found.notes.append(told)
    instances = {header.sop_instance for header in found.headers.values() if header.kind != "segmentation"}
    strangers = sum(instances.isdisjoint(segmentation.referenced) for segmentation in found.segmentations)
    if strangers:
        of = len(found.segmentations)
        found.notes.append(f"segmentation objects that refer to no image here: {strangers:,} of {of:,}")
    return [_with_mask(item, found.headers, by_instance) for item in found.items]


def _with_mask(item: Item, headers: Mapping[str, Header], by_instance: Mapping[str, Header]) -> Item:
    header = headers.get(item.files["image"].path)
    segmentation = None if header is None or item.problem is not None else by_instance.get(header.sop_instance)
    if segmentation is None:
        return item
    return replace(item, files={**item.files, MASK_FIELD: segmentation.file})
