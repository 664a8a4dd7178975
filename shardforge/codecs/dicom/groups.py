"""Functional groups: what is said of one frame, of all, or at the top level (PS3.3 C.7.6.16)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.filereader import read_dataset

from shardforge.codecs.dicom.item_bounds import Bounds, item_bounds
from shardforge.codecs.dicom.values import element_of, items
from shardforge.codecs.dicom.walk import PER_FRAME
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

Origin = Literal["frame", "shared", "top"]
_SHARED = 0x52009229


def places(dataset: Dataset, frame: int, macro: int) -> Iterator[tuple[Origin, Dataset]]:
    """Where values of a frame may stand, the most specific place first.

    Args:
        macro: tag of the functional group's sequence.

    Yields:
        The first item of the group for this frame, of the shared group, and the dataset itself; the first two only
        where they are there.

    Raises:
        SampleError: ``corrupt`` if something is said of the frame, or of all, that cannot be read: what is said at
            another place would stand for it.
    """
    group = _group_of(dataset, frame)
    if group is not None:
        yield from (("frame", item) for item in _readable(group, macro)[:1])
    for shared in _readable(dataset, _SHARED)[:1]:
        yield from (("shared", item) for item in _readable(shared, macro)[:1])
    yield "top", dataset


def _group_of(dataset: Dataset, frame: int) -> Dataset | None:
    """The functional groups of one frame. pydicom would read those of all, 0.3 ms each, which may be all the time
    that the frame takes otherwise."""
    element = element_of(dataset, PER_FRAME)
    if isinstance(element, RawDataElement) and element.value and element.is_little_endian and element.VR != "UN":
        bounds = _bounds(element.value, element.is_implicit_VR)
        if bounds is not None:
            inside = slice(*bounds[frame]) if frame < len(bounds) else None
            return None if inside is None else _read(element.value[inside], element.is_implicit_VR)
    groups = _readable(dataset, PER_FRAME)
    return groups[frame] if frame < len(groups) else None


def _readable(dataset: Dataset, tag: int) -> list[Dataset]:
    """The items of a sequence; none where it is absent or empty."""
    found, element = items(dataset, tag), element_of(dataset, tag)
    if not found and element is not None and element.value:
        raise _damaged(tag)
    return found


def _damaged(tag: int) -> SampleError:
    return SampleError(Reason.CORRUPT, f"functional groups that cannot be read: {tag:08X}")


@lru_cache(maxsize=2)
def _bounds(value: bytes, implicit: bool) -> Bounds | None:
    found = item_bounds(value, 0, implicit=implicit)
    return None if found is None else found[0]


@lru_cache(maxsize=16)
def _read(item: bytes, implicit: bool) -> Dataset:
    try:
        return read_dataset(io.BytesIO(item), implicit, True, len(item), at_top_level=False)
    except MemoryError:
        raise
    except Exception:
        # pydicom raises whatever a hostile item makes it run into.
        raise _damaged(PER_FRAME) from None
