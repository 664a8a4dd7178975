"""Says in how many samples segments of one mask lie over each other, once all shards are there."""

from __future__ import annotations

from pathlib import Path

from shardforge.compile.staging import PlanRecord
from shardforge.shards import metadata
from shardforge.shards.catalogue import Flag, Status
from shardforge.shards.layout import parquet_path


def warn_of_overlapping_masks(out: Path, record: PlanRecord) -> tuple[str, ...]:
    """A warning if masks from segmentation objects could not show all that their segments claim, else nothing.

    Raises:
        DamagedError: a parquet file cannot be read.
    """
    if record.settings.recipe.kind != "dicom" or all(info.kind != "mask" for info in record.fields.values()):
        return ()
    overlapping = 0
    for shard in record.shards:
        rows = metadata.read(parquet_path(out, shard.name), ["status", "flags"])
        columns = zip(rows["status"].to_pylist(), rows["flags"].to_pylist(), strict=True)
        overlapping += sum(
            status == Status.SUCCESS and Flag.MASK_OVERLAP in (flags or ()) for status, flags in columns
        )
    if not overlapping:
        return ()
    what = "the mask of 1 sample" if overlapping == 1 else f"the masks of {overlapping:,} samples"
    return (f"segments overlap in {what} (flag {Flag.MASK_OVERLAP}); the highest segment number covers the others",)
