"""Functional groups: what is said of one frame, of all, or at the top level (PS3.3 C.7.6.16)."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.filereader import read_dataset

from shardforge.codecs.dicom.values import element_of, items
from shardforge.codecs.dicom.walk import UNDEFINED

Origin = Literal["frame", "shared", "top"]
_SHARED, _PER_FRAME = 0x52009229, 0x52009230
_ITEM, _DELIMITER = (0xFFFE, 0xE000), (0xFFFE, 0xE0DD)


def places(dataset: Dataset, frame: int, macro: int) -> Iterator[tuple[Origin, Dataset]]:
    """Where values of a frame may stand, the most specific place first.

    Args:
        macro: tag of the functional group's sequence.

    Yields:
        The first item of the group for this frame, of the shared group, and the dataset itself; the first two only
        where they are there.
    """
    group = _group_of(dataset, frame)
    if group is not None:
        yield from (("frame", item) for item in items(group, macro)[:1])
    for shared in items(dataset, _SHARED)[:1]:
        yield from (("shared", item) for item in items(shared, macro)[:1])
    yield "top", dataset


def _group_of(dataset: Dataset, frame: int) -> Dataset | None:
    """The functional groups of one frame. pydicom would read those of all, 0.3 ms each, which may be all the time
    that the frame takes otherwise."""
    element = element_of(dataset, _PER_FRAME)
    if isinstance(element, RawDataElement) and element.value and element.VR in ("SQ", None):
        found = _items(element.value, element.is_little_endian)
        try:
            if found is not None:
                start, end = found[frame] if frame < len(found) else (0, 0)
                return (
                    _read(element.value[start:end], element.is_implicit_VR, element.is_little_endian) if end else None
                )
        except MemoryError:
            raise
        except Exception:
            # pydicom raises whatever a hostile item makes it run into; what it makes of them all together counts.
            pass
    groups = items(dataset, _PER_FRAME)
    return groups[frame] if frame < len(groups) else None


@lru_cache(maxsize=2)
def _items(value: bytes, little: bool) -> list[tuple[int, int]] | None:
    """Where the items of a sequence begin and end; None if one is of undefined length or damaged (PS3.5 7.5)."""
    unpack = struct.Struct("<HHL" if little else ">HHL").unpack_from
    found, at = [], 0
    while at + 8 <= len(value):
        group, number, length = unpack(value, at)
        if (group, number) == _DELIMITER:
            break
        at += 8
        if (group, number) != _ITEM or length == UNDEFINED or at + length > len(value):
            return None
        found.append((at, at + length))
        at += length
    return found


@lru_cache(maxsize=16)
def _read(item: bytes, implicit: bool, little: bool) -> Dataset:
    return read_dataset(io.BytesIO(item), implicit, little, len(item), at_top_level=False)
