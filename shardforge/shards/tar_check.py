"""How a shard's tar is read and held against its rows, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import IO

from shardforge.shards.agreement import compare_tar
from shardforge.shards.catalogue import Status
from shardforge.shards.foreign_agreement import compare_foreign
from shardforge.shards.foreign_scan import ForeignScan, look_for, scan_foreign
from shardforge.shards.manifest import Manifest
from shardforge.shards.rows import Note, Rows
from shardforge.shards.scan import Scan, scan


def class_field_of(manifest: Manifest) -> str | None:
    """The member whose payload is the label as text, if there is one."""
    return next((name for name, info in manifest.fields.items() if info.kind == "class"), None)


def reader_of(manifest: Manifest, shard: str, rows: Rows | None) -> Callable[[IO[bytes]], Scan | ForeignScan]:
    """What reads a shard's tar from front to back.

    Args:
        rows: of the shard, if they are sound; after damage the reader of our own tars goes on where one says.
    """
    image, label, foreign = manifest.image_field, class_field_of(manifest), manifest.foreign
    if foreign is not None:
        wanted, look = look_for(image, label)
        prefix = f"{shard}/" if foreign.prefixed else ""
        return lambda file: scan_foreign(file, prefix=prefix, wanted=wanted, look=look)
    restarts = [] if rows is None else sorted(sample.start for sample in rows.samples)
    return lambda file: scan(file, image_field=image, class_field=label, restarts=restarts)


def as_indexed(found: Scan | ForeignScan) -> Scan | ForeignScan:
    """What was found in a tar with the right checksum: damage in one from elsewhere was there when it was indexed."""
    return replace(found, damage=()) if isinstance(found, ForeignScan) else found


def count_samples(found: Scan | ForeignScan, rows: Rows | None) -> int:
    """How many samples are in a tar. One from elsewhere also holds items whose rows say that they are none."""
    if rows is None or isinstance(found, Scan):
        return len(found.samples)
    pairs = zip(rows.table["key"].to_pylist(), rows.table["status"].to_pylist(), strict=True)
    none = {key for key, status in pairs if status != Status.SUCCESS}
    return sum(sample.key not in none for sample in found.samples)


def compare(found: Scan | ForeignScan, rows: Rows, manifest: Manifest, *, note: Note, note_row: Note) -> None:
    """Notes at most one difference for each sample; see :func:`compare_tar`."""
    label = class_field_of(manifest)
    if isinstance(found, Scan):
        compare_tar(found, rows.samples, class_field=label, note=note, note_row=note_row)
    else:
        compare_foreign(
            found,
            rows.samples,
            keys=rows.keys,
            fields=manifest.fields,
            class_field=label,
            note=note,
            note_row=note_row,
        )
