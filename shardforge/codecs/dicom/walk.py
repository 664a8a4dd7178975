"""Walks the elements of a dataset in little endian bytes, faster than pydicom and with equal results.

Most of a parser's time goes into elements that nobody asks for. What is unusual, damaged above all, is left to
pydicom: an element of undefined length by itself, but for the functional groups of frames, which are left unread; and
anything else with the whole dataset.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from pydicom.charset import convert_encodings, default_encoding
from pydicom.dataelem import RawDataElement, empty_value_for_VR
from pydicom.filereader import data_element_generator
from pydicom.tag import BaseTag
from pydicom.valuerep import EXPLICIT_VR_LENGTH_16, EXPLICIT_VR_LENGTH_32
from pydicom.values import convert_string

from shardforge.codecs.dicom.bounded_source import BoundedSource
from shardforge.codecs.dicom.item_bounds import UNDEFINED, item_bounds
from shardforge.codecs.dicom.outline import Outline

PIXEL_TAGS = frozenset((0x7FE00008, 0x7FE00009, 0x7FE00010))
"""FloatPixelData, DoubleFloatPixelData, PixelData."""

PER_FRAME = 0x52009230
"""PerFrameFunctionalGroupsSequence, which may be nearly all of a header."""
_CHARSET, _DELIMITERS = 0x00080005, 0xFFFE
_SHORT = {str(vr).encode(): str(vr) for vr in EXPLICIT_VR_LENGTH_16}
_LONG = {str(vr).encode(): str(vr) for vr in EXPLICIT_VR_LENGTH_32}
_EXPLICIT = struct.Struct("<HH2sH").unpack_from
_IMPLICIT = struct.Struct("<HHL").unpack_from
_LENGTH = struct.Struct("<L").unpack_from


@dataclass(frozen=True)
class Walked:
    """The elements before the pixel data.

    Attributes:
        elements: those wanted, as pydicom reads them.
        tag, vr, start, length: of the pixel data; see :class:`shardforge.codecs.dicom.parse.PixelElement`.
    """

    elements: dict[BaseTag, Any]
    tag: int
    vr: str | None
    start: int
    length: int | None


def walk(data: bytes, at: int, tags: Collection[int] | None, *, implicit: bool) -> Walked | None:
    """The elements up to the pixel data, or None where pydicom has to read them.

    Args:
        data: the file's first bytes.
        at: offset of the dataset.
        tags: read these elements and SpecificCharacterSet only; None: all.
        implicit: the elements do not state their VR.
    """
    elements: dict[BaseTag, Any] = {}
    encoding: Any = default_encoding
    vr: str | None = None
    size = len(data)
    outline = Outline()
    source = BoundedSource(io.BytesIO(data), size)
    while at + 8 <= size:
        begin = at
        if implicit:
            group, number, length = _IMPLICIT(data, at)
            at += 8
        else:
            group, number, code, length = _EXPLICIT(data, at)
            vr = _SHORT.get(code)
            at += 8
            if vr is None:
                vr = _LONG.get(code)
                if vr is None or at + 4 > size:
                    return None
                (length,) = _LENGTH(data, at)
                at += 4
        tag = group << 16 | number
        if tag in PIXEL_TAGS:
            return Walked(elements, tag, vr, at, None if length == UNDEFINED else length)
        if group == _DELIMITERS or outline.follow(tag) is not None:
            return None
        if length == UNDEFINED and tag == PER_FRAME and vr in ("SQ", None):
            sequence = item_bounds(data, at, implicit=implicit)
            if sequence is None or sequence[1] > size - 8:
                return None
            if tags is None or tag in tags:
                length = sequence[1] - at
                groups = data[at : sequence[1]]
                elements[BaseTag(tag)] = RawDataElement(BaseTag(tag), "SQ", length, groups, at, implicit, True)
            at = sequence[1]
            continue
        if length == UNDEFINED:
            end = _read_by_pydicom(source, begin, tags, elements, encoding, implicit=implicit)
            if end is None:
                return None
            at = end
            continue
        end = at + length
        if tags is None or tag in tags or tag == _CHARSET:
            if end > size:
                return None
            value = data[at:end] if length else cast("bytes | None", empty_value_for_VR(vr, raw=True))
            elements[BaseTag(tag)] = RawDataElement(BaseTag(tag), vr, length, value, at, implicit, True)
            if tag == _CHARSET:
                try:
                    encoding = convert_encodings(convert_string(value or b"", True))
                except Exception:
                    # What pydicom makes of it belongs to the parser that reports it.
                    return None
        at = end
    return None


def _read_by_pydicom(
    source: BoundedSource,
    at: int,
    tags: Collection[int] | None,
    elements: dict[BaseTag, Any],
    encoding: Any,
    *,
    implicit: bool,
) -> int | None:
    """Reads one element; where the next one stands, or None if that cannot be told."""
    seen = 0

    def stop_at_second(tag: BaseTag, vr: str | None, length: int) -> bool:
        nonlocal seen
        seen += 1
        return seen > 1

    wanted: Any = None if tags is None else list(tags)
    try:
        source.seek(at)
        for element in data_element_generator(
            cast(BinaryIO, source), implicit, True, stop_at_second, encoding=encoding, specific_tags=wanted
        ):
            elements[element.tag] = element
    except MemoryError:
        raise
    except Exception:
        # pydicom raises whatever a hostile length or nesting makes it run into.
        return None
    return source.tell() if seen > 1 else None
