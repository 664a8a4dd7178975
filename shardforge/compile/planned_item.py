"""What a shard task knows of its shard, of an item, and of the dataset that the item will be a sample of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shardforge.codecs.limits import Limits
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import FieldInfo, ImageField, LabelInfo


@dataclass(frozen=True)
class SampleSettings:
    """What is the same for all items of a dataset. ``annotations``: ``boxes`` or ``keypoints`` → their column."""

    recipe: Recipe
    fields: Mapping[str, FieldInfo]
    label: LabelInfo
    image_field: ImageField
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        limits = self.recipe.limits
        return Limits(pixels=limits.pixels, frames=limits.frames, source_bytes=limits.source_bytes)


@dataclass(frozen=True)
class PlannedItem:
    """One row of the plan.

    Attributes:
        files: field → (path below the source folder, size in bytes).
        frame, frames: of so many samples that the main file makes, this is number ``frame``.
        planned_sha256: of the main file, if the plan has read it.
        duplicate_of: key of the item that is kept in place of this one.
        annotations: ``boxes`` or ``keypoints`` → the table's cell.
        crop: what to cut out of a DICOM image: ``none``, ``breast`` or ``ultrasound``.
        cross_check: decode a DICOM image with a second decoder as well.
        slice_frames: of a DICOM stack or volume, the frame of each slice in its file, in order of place.
    """

    key: str | None
    source: str
    files: Mapping[str, tuple[bytes, int]]
    label: Any = None
    label_name: Any = None
    caption: str | None = None
    problem: Reason | None = None
    detail: str | None = None
    frame: int = 0
    frames: int = 1
    planned_sha256: str | None = None
    duplicate_of: str | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)
    crop: str = "none"
    cross_check: bool = False
    slice_frames: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlannedShard:
    """One shard task: rows ``start`` to ``stop`` of the plan."""

    name: str
    split: str
    start: int
    stop: int
