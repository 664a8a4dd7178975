"""AVIF and HEIF: header of the primary item (ISO/IEC 23008-12, ISO/IEC 14496-12) and decoding.

Rotation and mirroring (irot, imir) are properties of the picture and count; the EXIF orientation does not
(ISO/IEC 23000-22, 7.3.10: it is for information only).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor

import imagecodecs
import numpy as np

from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.geometry.orientation import oriented_size
from shardforge.shards.catalogue import Reason

# An orientation as (exchange axes, flip columns, flip rows), applied in this order; see apply_orientation.
_TURNS = {
    1: (0, 0, 0),
    2: (0, 1, 0),
    3: (0, 1, 1),
    4: (0, 0, 1),
    5: (1, 0, 0),
    6: (1, 1, 0),
    7: (1, 1, 1),
    8: (1, 0, 1),
}
_ORIENTATIONS = {turn: orientation for orientation, turn in _TURNS.items()}
_ANTICLOCKWISE = {0: (0, 0, 0), 1: (1, 0, 1), 2: (0, 1, 1), 3: (1, 1, 0)}


@dataclass(frozen=True)
class Box:
    """One box: its type and the offsets of its content."""

    kind: bytes
    payload: int
    end: int


@dataclass(frozen=True)
class Item:
    """Properties of the primary item."""

    width: int
    height: int
    crop: tuple[slice, slice]
    orientation: int
    bits: int
    icc: bytes | None


def clean_aperture(body: bytes, width: int, height: int) -> tuple[slice, slice]:
    """Rows and columns that a clap property leaves of a picture (ISO/IEC 14496-12, 12.1.4).

    Args:
        body: content of the box: width, height and the offsets of the centre, each a fraction of two 32-bit numbers.

    Raises:
        SampleError: ``bad_header`` for an aperture outside the picture.
    """
    numbers = struct.unpack_from(">iiiiiiii", body)
    spans = []
    for length, size, offset in ((height, 2, 6), (width, 0, 4)):
        if numbers[size + 1] < 1 or numbers[offset + 1] < 1:
            raise SampleError(Reason.BAD_HEADER, f"clean aperture {numbers}")
        clear = numbers[size] // numbers[size + 1]
        # The centre of the aperture lies at the centre of the picture plus the offset.
        start = Fraction(length - clear, 2) + Fraction(numbers[offset], numbers[offset + 1])
        spans.append(slice(floor(start), floor(start) + clear))
        if not 0 <= spans[-1].start < spans[-1].stop <= length:
            raise SampleError(Reason.BAD_HEADER, f"clean aperture {numbers} of {width} x {height} pixels")
    return spans[0], spans[1]


def boxes(data: bytes, start: int, stop: int) -> Iterator[Box]:
    """The boxes between two offsets; a size that makes no sense ends them."""
    at = start
    while at + 8 <= stop:
        size, kind = struct.unpack_from(">I4s", data, at)
        payload = at + 8
        if size == 1 and at + 16 <= stop:
            (size,) = struct.unpack_from(">Q", data, payload)
            payload += 8
        end = stop if size == 0 else at + size
        if end < payload or end > stop:
            return
        yield Box(kind, payload, end)
        at = end


def _find(data: bytes, path: tuple[bytes, ...], start: int, stop: int) -> Box | None:
    """The first box at a path; full boxes on the way (meta) have four more bytes."""
    box: Box | None = None
    for kind in path:
        box = next((b for b in boxes(data, start, stop) if b.kind == kind), None)
        if box is None:
            return None
        start, stop = box.payload + (4 if kind == b"meta" else 0), box.end
    return box


def _combine(first: tuple[int, int, int], then: tuple[int, int, int]) -> tuple[int, int, int]:
    """Two turns as one: an exchange of axes exchanges the flips made before it."""
    swap, columns, rows = first
    if then[0]:
        swap, columns, rows = 1 - swap, rows, columns
    return swap, columns ^ then[1], rows ^ then[2]


def _primary(data: bytes) -> Item:
    meta = (b"meta",)
    properties = _find(data, (*meta, b"iprp", b"ipco"), 0, len(data))
    links = _find(data, (*meta, b"iprp", b"ipma"), 0, len(data))
    chosen = _find(data, (*meta, b"pitm"), 0, len(data))
    if properties is None or links is None or chosen is None:
        raise SampleError(Reason.CORRUPT, "no primary item with properties")
    wide = data[chosen.payload] > 0
    (identifier,) = struct.unpack_from(">I" if wide else ">H", data, chosen.payload + 4)
    listed = list(boxes(data, properties.payload, properties.end))
    width = height = 0
    bits, icc, turn, aperture = 8, None, (0, 0, 0), b""
    for index in _linked(data, links, identifier):
        if not 0 < index <= len(listed):
            continue
        box = listed[index - 1]
        body = data[box.payload : box.end]
        if box.kind == b"ispe":
            width, height = struct.unpack_from(">II", body, 4)
        elif box.kind == b"pixi" and len(body) > 5:
            bits = body[5]
        elif box.kind == b"colr" and body[:4] in (b"prof", b"rICC"):
            icc = body[4:]
        elif box.kind == b"clap":
            aperture = body
        elif box.kind == b"irot" and body:
            turn = _combine(turn, _ANTICLOCKWISE[body[0] & 3])
        elif box.kind == b"imir" and body:
            turn = _combine(turn, (0, 1, 0) if body[0] & 1 else (0, 0, 1))
    crop = clean_aperture(aperture, width, height) if aperture else (slice(0, height), slice(0, width))
    return Item(width, height, crop, _ORIENTATIONS[turn], bits, icc)


def _linked(data: bytes, links: Box, identifier: int) -> list[int]:
    """Indices (from 1) of an item's properties, in order (ipma, 23008-12, 9.3.1)."""
    version, wide = data[links.payload], data[links.payload + 3] & 1
    (count,) = struct.unpack_from(">I", data, links.payload + 4)
    at = links.payload + 8
    for _ in range(count):
        if at >= links.end:
            break
        (item,) = struct.unpack_from(">I" if version else ">H", data, at)
        at += 4 if version else 2
        number = data[at]
        indices = struct.unpack_from(f">{number}{'H' if wide else 'B'}", data, at + 1)
        at += 1 + number * (2 if wide else 1)
        if item == identifier:
            return [index & (0x7FFF if wide else 0x7F) for index in indices]
    return []


def _frames(data: bytes) -> int:
    """Samples of the first track of a sequence; 1 for a still picture."""
    table = _find(data, (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsz"), 0, len(data))
    if table is None or table.end - table.payload < 12:
        return 1
    return max(1, int.from_bytes(data[table.payload + 8 : table.payload + 12], "big"))


def _read(data: bytes, name: str) -> Header:
    try:
        item = _primary(data)
        frames = _frames(data)
    except (struct.error, IndexError):
        raise SampleError(Reason.TRUNCATED, "the file ends inside its description") from None
    if not item.width or not item.height:
        raise SampleError(Reason.BAD_HEADER, f"{item.width} x {item.height} pixels")
    return Header(name, item.width, item.height, frames, item.orientation, item.icc)


def read_avif_header(data: bytes) -> Header:
    """Size, frames of a sequence, turn and profile of the primary item.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    return _read(data, "avif")


def read_heif_header(data: bytes) -> Header:
    """As :func:`read_avif_header`, but upright: the decoder of HEIF turns the picture itself."""
    header = _read(data, "heif")
    width, height = oriented_size(header.width, header.height, header.orientation or 1)
    return replace(header, width=width, height=height, orientation=None)


def decode_avif(data: bytes, header: Header) -> Samples:
    """Decodes the primary item of an AVIF file, unturned.

    Raises:
        SampleError: ``corrupt`` or ``unsupported``.
    """
    # As a sequence the decoder would decode every frame; under this brand it takes the primary item.
    still = data[:8] + b"avif" + data[12:] if data[8:12] == b"avis" else data
    return arranged(attempt(lambda: imagecodecs.avif_decode(still, numthreads=1)), data)


def arranged(values: Array, data: bytes) -> Samples:
    """Decoded values of an AVIF file, cropped as its primary item says.

    Raises:
        SampleError: ``corrupt`` for another size, or as :func:`read_avif_header`.
    """
    item = _primary(data)
    if values.shape[:2] != (item.height, item.width):
        raise SampleError(Reason.CORRUPT, f"two sizes: {item.width} x {item.height} and {values.shape}")
    return plain_samples(values[item.crop], 255 if values.dtype == np.uint8 else (1 << item.bits) - 1)


def decode_heif(data: bytes, header: Header) -> Samples:
    """Decodes the primary item of a HEIF file with pillow_heif, if that is installed; it turns the picture itself.

    Raises:
        SampleError: ``corrupt``; ``unsupported`` without the decoder.
    """
    try:
        import pillow_heif
    except ImportError:
        raise SampleError(Reason.UNSUPPORTED, "HEIF needs the package pillow-heif") from None

    def primary() -> Array:
        file = pillow_heif.open_heif(data, convert_hdr_to_8bit=True)
        return np.asarray(file[file.primary_index])

    return plain_samples(attempt(primary))
