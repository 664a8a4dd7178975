"""Bytes of a DICOM file → a pydicom dataset and the place of its pixel data.

The usual elements are walked over (:mod:`shardforge.codecs.dicom.walk`), pydicom reads the others; the start of the
file, deflated datasets and pixel data are dealt with here, so that no length that a file states is believed before it
has been compared with what there is.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import pydicom.config
from pydicom.charset import convert_encodings
from pydicom.dataset import Dataset
from pydicom.filereader import data_element_generator
from pydicom.tag import BaseTag

from shardforge.codecs.dicom.bounded_source import BoundedSource
from shardforge.codecs.dicom.item_bounds import UNDEFINED
from shardforge.codecs.dicom.nested import endless_sequences
from shardforge.codecs.dicom.outline import Outline
from shardforge.codecs.dicom.part10 import Start, read_start
from shardforge.codecs.dicom.syntaxes import DEFLATED_DATASETS, sniff_fragment
from shardforge.codecs.dicom.walk import PIXEL_TAGS, walk
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

# pydicom has these as module state only. Files come from anywhere: values are judged by who uses them, so pydicom's
# own opinion on each would be noise on stderr, and a value of a wrong length is one lost value, not a lost file.
pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
pydicom.config.convert_wrong_length_to_UN = True
warnings.filterwarnings("ignore", module=r"pydicom\b")

# Enough for the headers of nearly all files; more is read only where a header is longer.
_HEAD = 1 << 15
# Where the functional groups of many frames end is found in memory, in a thirtieth of pydicom's time.
_LONG_HEAD = 1 << 22
_INFLATED_HEAD = 1 << 18
_UNDEFINED_LENGTH = struct.pack("<L", UNDEFINED)


@dataclass(frozen=True)
class PixelElement:
    """Where pixel data stand.

    Attributes:
        tag: one of :data:`PIXEL_TAGS`.
        start: offset of the value; in the inflated bytes where the dataset is deflated, else in the file.
        length: as stated, in bytes; None for undefined (encapsulated).
        vr: as stated; None where the dataset is implicit.
        little: byte order of the dataset.
    """

    tag: int
    start: int
    length: int | None
    vr: str | None
    little: bool


@dataclass(frozen=True)
class Parsed:
    """A parsed file.

    Attributes:
        dataset: the elements before the pixel data, file meta apart. pydicom converts values when they are first
            used, and may raise then.
        transfer_syntax: as stated, or inferred.
        media_sop_class: MediaStorageSOPClassUID of the file meta, or "".
        flags: ``ts_inferred``, ``preamble_not_empty``.
        pixels: where the pixel data stand; None if there are none.
        problem: ``truncated``, ``corrupt`` or ``over_budget`` if that kept the parser from reaching the pixel data or
            the end; ``truncated`` also where an image's header ends between two elements before it is complete.
        inflated: the dataset's own bytes where the transfer syntax deflates them; a header-only pass leaves it None.
    """

    dataset: Dataset
    transfer_syntax: str
    media_sop_class: str
    flags: tuple[Flag, ...]
    pixels: PixelElement | None
    problem: Reason | None = None
    inflated: bytes | None = None


def parse_dicom(
    file: BinaryIO,
    *,
    tags: Sequence[int | BaseTag] | None = None,
    max_inflated: int,
    size: int,
    head_size: int = _HEAD,
) -> Parsed:
    """Parses a DICOM file, with or without preamble and file meta information, up to its pixel data.

    Args:
        file: at its start, seekable.
        tags: read these elements only (header-only pass): of most files no more than 32 KiB are read, and large
            elements are skipped.
        max_inflated: bytes that a deflated dataset may have.
        size: of the file, in bytes.
        head_size: bytes to read first where ``tags`` are given; all of a file that is in memory anyway.

    Raises:
        SampleError: ``empty``, ``not_dicom``, ``truncated`` (no element behind the file meta information),
            ``corrupt`` (a damaged deflate stream, or zeros behind the meta information), ``over_budget`` (inflated).
    """
    if size == 0:
        raise SampleError(Reason.EMPTY)
    head = file.read(size if tags is None else min(size, head_size))
    start = read_start(head, size)
    if start.offset + 8 > len(head) and len(head) < size:
        # File meta information may hold anything, a long private element too.
        head += file.read(size - len(head))
        start = read_start(head, size)
    wanted = None if tags is None else frozenset(map(int, tags))
    if start.transfer_syntax in DEFLATED_DATASETS:
        return _parse_deflated(file, head, start, wanted, max_inflated, size)
    parsed = _walk(head, start, wanted)
    if parsed is None and len(head) < size and _UNDEFINED_LENGTH in head:
        head += file.read(min(size, _LONG_HEAD) - len(head))
        parsed = _walk(head, start, wanted)
    if parsed is None:
        parsed = _parse(io.BytesIO(head) if len(head) == size else file, size, start, wanted)
    if Flag.TS_INFERRED in start.flags and parsed.pixels is not None and parsed.pixels.length is None:
        found = sniff_fragment(_first_fragment(file, parsed.pixels))
        return replace(parsed, transfer_syntax=found or parsed.transfer_syntax)
    return parsed


def _parse_deflated(
    file: BinaryIO, head: bytes, start: Start, tags: Set[int] | None, limit: int, size: int
) -> Parsed:
    """Inflates the dataset (PS3.5, A.5) no further than the pass needs."""
    inside = replace(start, offset=0)
    if tags is not None:
        some, _ = _inflate(head[start.offset :], min(_INFLATED_HEAD, limit))
        with suppress(SampleError):
            parsed = _parse(io.BytesIO(some), len(some), inside, tags)
            if parsed.pixels is not None:
                return parsed
        head += file.read(size - len(head))
    whole, ended = _inflate(head[start.offset :], limit + 1)
    if len(whole) > limit:
        raise SampleError(Reason.OVER_BUDGET, f"the dataset inflates to more than {limit} bytes")
    parsed = _parse(io.BytesIO(whole), len(whole), inside, tags)
    if parsed.pixels is None and parsed.problem is None and not ended:
        parsed = replace(parsed, problem=Reason.TRUNCATED)
    return parsed if tags is not None else replace(parsed, inflated=whole)


def _inflate(data: bytes, limit: int) -> tuple[bytes, bool]:
    """Up to ``limit`` bytes, and whether the stream ends with them."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        return stream.decompress(data, limit), stream.eof
    except zlib.error as error:
        raise SampleError(Reason.CORRUPT, f"deflated dataset: {error}") from None


def _walk(head: bytes, start: Start, tags: Set[int] | None) -> Parsed | None:
    """The usual case: whole elements in little endian up to the pixel data."""
    first = head[start.offset : start.offset + 6]
    implicit = _is_implicit(first)
    found = walk(head, start.offset, tags, implicit=implicit) if start.little else None
    if found is None or endless_sequences(found.elements):
        return None
    pixels = PixelElement(found.tag, found.start, found.length, found.vr, True)
    return Parsed(
        _dataset(found.elements, start, implicit=implicit),
        start.transfer_syntax,
        start.media_sop_class,
        start.flags,
        pixels,
    )


def _is_implicit(first: bytes) -> bool:
    """What the first element looks like counts more than what the transfer syntax says."""
    return not (first[4:5].isupper() and first[5:6].isupper())


def _dataset(elements: dict[BaseTag, Any], start: Start, *, implicit: bool) -> Dataset:
    dataset = Dataset(elements)
    dataset.set_original_encoding(implicit, start.little, _encodings(elements))
    return dataset


def _parse(file: BinaryIO, size: int, start: Start, tags: Set[int] | None) -> Parsed:
    source = BoundedSource(file, size)
    implicit = start.implicit
    source.seek(start.offset)
    first = source.read(6)
    if len(first) == 6:
        implicit = _is_implicit(first)
    source.seek(start.offset)
    outline = Outline()
    pixels: PixelElement | None = None
    problem: Reason | None = None

    def stops(tag: int, vr: str | None, length: int) -> bool:
        nonlocal pixels, problem
        at = source.tell()
        if tag in PIXEL_TAGS:
            pixels = PixelElement(int(tag), at, None if length == UNDEFINED else length, vr, start.little)
            return True
        problem = outline.follow(int(tag))
        if problem is None and length != UNDEFINED and at + length > size:
            problem = Reason.TRUNCATED
        return problem is not None

    elements: dict[BaseTag, Any] = {}
    whole = 1
    try:
        for element in data_element_generator(
            cast(BinaryIO, source), implicit, start.little, stops, specific_tags=cast(Any, tags and list(tags))
        ):
            elements[element.tag] = element
        whole = outline.count - (problem is not None)
        if pixels is None and problem is None:
            problem = _end(source, size, outline, _sop_class(elements) or start.media_sop_class)
    except MemoryError:
        raise
    except (OSError, EOFError, struct.error):
        problem = Reason.TRUNCATED
    except Exception:
        # pydicom raises whatever a hostile length or nesting makes it run into.
        problem = Reason.CORRUPT
    if source.exhausted:
        problem = Reason.OVER_BUDGET
    for tag in endless_sequences(elements):
        del elements[tag]
        pixels, problem = None, Reason.OVER_BUDGET
    if pixels is None and whole < 1:
        raise _nothing(start, problem)
    dataset = _dataset(elements, start, implicit=implicit)
    return Parsed(dataset, start.transfer_syntax, start.media_sop_class, start.flags, pixels, problem)


def _end(source: BoundedSource, size: int, outline: Outline, sop_class: str) -> Reason | None:
    """What is wrong with elements that end without pixel data."""
    if source.broke_off or outline.breaks_off(sop_class):
        return Reason.TRUNCATED
    # A delimiter without its sequence ends a dataset for pydicom.
    return Reason.CORRUPT if source.tell() != size or source.unread == 0 else None


def _nothing(start: Start, problem: Reason | None) -> SampleError:
    """Why a file has no element at all: without file meta information it need not be of DICOM."""
    if start.offset in (0, 132) and Flag.TS_INFERRED in start.flags:
        return SampleError(Reason.NOT_DICOM, "no element can be read")
    return SampleError(problem or Reason.TRUNCATED, "no element behind the file meta information")


def _sop_class(elements: dict[BaseTag, Any]) -> str:
    stated = elements.get(BaseTag(0x00080016))
    value = None if stated is None else stated.value
    return value.decode("latin-1").strip("\0 ") if isinstance(value, bytes) else ""


def _encodings(elements: dict[BaseTag, Any]) -> list[str]:
    """Of text, by SpecificCharacterSet; unknown ones count as the default."""
    stated = elements.get(BaseTag(0x00080005))
    try:
        terms = None if stated is None else stated.value.decode("ascii").strip(" \0").split("\\")
        return convert_encodings(terms)
    except Exception:
        return convert_encodings(None)


def _first_fragment(file: BinaryIO, pixels: PixelElement) -> bytes:
    """The start of the fragment behind the offset table (PS3.5, A.4)."""
    file.seek(pixels.start)
    table = int.from_bytes(file.read(8)[4:], "little")
    file.seek(pixels.start + 8 + table)
    return file.read(8 + 1024)[8:]
