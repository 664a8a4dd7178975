"""What becomes of images that may show identifying text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa

from shardforge.dicom.burned_in import AnnotationFacts, BurnedInJudgement, judge_burned_in
from shardforge.dicom.ultrasound_crop import scan_regions
from shardforge.sections import DicomOptions
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.scan import DicomScan
from shardforge.sources.item import Item

COLUMN = "dicom_burned_in"


def judge_items(found: DicomScan, options: DicomOptions) -> None:
    """Gives every item the column ``dicom_burned_in`` (``none``, ``unknown``, ``high``) and applies the policy:
    images at risk are filtered, or cut to their region of scan where the recipe says so and the header marks one.
    """
    judged = {path: judge_burned_in(_facts(header)) for path, header in found.headers.items()}
    told: Counter[str] = Counter()
    items = []
    for item in found.items:
        judgement = judged.get(item.files["image"].path) if "image" in item.files else None
        if judgement is None or item.problem is not None:
            items.append(replace(item, columns={**item.columns, COLUMN: None}))
            continue
        kept = _apply(item, judgement, options)
        told[judgement.reason] += kept.problem is Reason.BURNED_IN
        items.append(replace(kept, columns={**kept.columns, COLUMN: judgement.risk}))
    found.items = items
    found.columns = {**found.columns, COLUMN: pa.string()}
    quarantined = +told
    if quarantined:
        why = "; ".join(f"{count:,}: {reason}" for reason, count in quarantined.most_common())
        found.notes.append(f"burned-in text: {quarantined.total():,} items filtered ({why}); --burned-in decides")


def _apply(item: Item, judgement: BurnedInJudgement, options: DicomOptions) -> Item:
    item = replace(item, crop=options.crop)
    if judgement.risk == "none" or options.burned_in == "keep":
        return item
    if options.burned_in == "crop" and judgement.croppable:
        return replace(item, crop="scan")
    return replace(item, problem=Reason.BURNED_IN, detail=judgement.reason)


def _facts(header: Header) -> AnnotationFacts:
    return AnnotationFacts(
        annotation=header.burned_in_annotation,
        sop_class=header.sop_class,
        image_type=header.image_type,
        modality=header.modality,
        conversion_type=header.conversion_type,
        capture_device=header.capture_device,
        capture_words=header.capture_words,
        samples=header.samples,
        regions=len(scan_regions(header.regions, header.columns, header.rows)),
    )
