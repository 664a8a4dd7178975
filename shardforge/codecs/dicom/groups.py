"""Functional groups: what is said of one frame, of all, or at the top level (PS3.3 C.7.6.16)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.values import items

Origin = Literal["frame", "shared", "top"]
_SHARED, _PER_FRAME = 0x52009229, 0x52009230


def places(dataset: Dataset, frame: int, macro: int) -> Iterator[tuple[Origin, Dataset]]:
    """Where values of a frame may stand, the most specific place first.

    Args:
        macro: tag of the functional group's sequence.

    Yields:
        The first item of the group for this frame, of the shared group, and the dataset itself; the first two only
        where they are there.
    """
    groups = items(dataset, _PER_FRAME)
    if frame < len(groups):
        yield from (("frame", item) for item in items(groups[frame], macro)[:1])
    for shared in items(dataset, _SHARED)[:1]:
        yield from (("shared", item) for item in items(shared, macro)[:1])
    yield "top", dataset
