"""What a recipe says about a source of DICOM files, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from shardforge.codecs.limits import Limits
from shardforge.sources.dicom.zips import ZipLimits

Unit = Literal["slice", "frame", "stack", "volume"]


@dataclass(frozen=True, slots=True)
class DicomSourceOptions:
    """What a recipe says about a source of DICOM files.

    Attributes:
        unit: what becomes one sample: a ``slice`` or ``frame`` (both: one frame of one file), a ``stack`` (a slice
            with its neighbours), a ``volume`` (all slices of one kind in a series).
        neighbours: slices on each side in a stack.
        group_by: what must stay in one split.
        irregular: whether stacks and volumes of slices that form no regular, straight grid ``fail`` or are kept.
        dose: RT Dose objects are images.
        follow_symlinks: whether links that leave the source folder are followed.
        workers: processes that read headers.
        limits: of one file; ``source_bytes`` also bounds what a deflated dataset may inflate to.
        zips: of one archive.
    """

    unit: Unit = "slice"
    neighbours: int = 1
    group_by: Literal["patient", "study", "series", "none"] = "patient"
    irregular: Literal["fail", "keep"] = "fail"
    dose: bool = False
    follow_symlinks: bool = False
    workers: int = 1
    limits: Limits = field(default_factory=Limits)
    zips: ZipLimits = field(default_factory=ZipLimits)
