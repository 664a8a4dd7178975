"""DICOM files made element by element, so that a test can say what is wrong with them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.limits import Limits

_LONG = frozenset(("OB", "OW", "OF", "OD", "OV", "SQ", "UN", "UT"))
_SHORTS = {"US": "H", "SS": "h", "FD": "d", "UL": "I"}
UNDEFINED = 0xFFFFFFFF
EXPLICIT_LE = "1.2.840.10008.1.2.1"
EXPLICIT_BE = "1.2.840.10008.1.2.2"
Value = bytes | str | Sequence[float]


def explicit(tag: int, vr: str, value: Value, length: int | None = None, order: str = "<") -> bytes:
    """An element in explicit VR."""
    if isinstance(value, str):
        value = value.encode("latin-1")
        value += b"\0" if len(value) % 2 and vr == "UI" else b" " if len(value) % 2 else b""
    elif not isinstance(value, bytes):
        value = struct.pack(f"{order}{len(value)}{_SHORTS[vr]}", *value)
    size = len(value) if length is None else length
    head = struct.pack(f"{order}HH", tag >> 16, tag & 0xFFFF) + vr.encode()
    return head + (struct.pack(f"{order}HI", 0, size) if vr in _LONG else struct.pack(f"{order}H", size)) + value


def sequence(tag: int, *contents: bytes) -> bytes:
    """A sequence of defined length."""
    return explicit(tag, "SQ", b"".join(b"\xfe\xff\0\xe0" + struct.pack("<I", len(c)) + c for c in contents))


def meta(syntax: str = EXPLICIT_LE) -> bytes:
    """Preamble and file meta information."""
    return bytes(128) + b"DICM" + explicit(0x00020010, "UI", syntax)


def module(
    rows: int = 2,
    columns: int = 2,
    *,
    samples: int = 1,
    bits: tuple[int, int, int] = (16, 16, 15),
    signed: bool = False,
    photometric: str = "MONOCHROME2",
    planar: int | None = None,
    frames: str | None = None,
    order: str = "<",
) -> dict[int, bytes]:
    """The Image Pixel module, by tag."""

    def us(tag: int, value: int) -> tuple[int, bytes]:
        return tag, explicit(tag, "US", [value], order=order)

    made = dict(
        [
            us(0x00280002, samples),
            (0x00280004, explicit(0x00280004, "CS", photometric, order=order)),
            us(0x00280010, rows),
            us(0x00280011, columns),
            us(0x00280100, bits[0]),
            us(0x00280101, bits[1]),
            us(0x00280102, bits[2]),
            us(0x00280103, int(signed)),
        ]
    )
    if planar is not None:
        made.update([us(0x00280006, planar)])
    if frames is not None:
        made[0x00280008] = explicit(0x00280008, "IS", frames, order=order)
    return made


def native(
    pixels: bytes,
    elements: dict[int, bytes],
    *more: bytes,
    syntax: str = EXPLICIT_LE,
    vr: str = "OW",
    tag: int = 0x7FE00010,
    length: int | None = None,
) -> bytes:
    """A file with native pixel data."""
    order = ">" if syntax == EXPLICIT_BE else "<"
    body = b"".join((*(elements[tag] for tag in sorted(elements)), *more))
    return meta(syntax) + body + explicit(tag, vr, pixels, length, order)


def items(*fragments: bytes, table: Sequence[int] = (), delimited: bool = True) -> bytes:
    """Encapsulated pixel data's value."""
    parts = [struct.pack(f"<{len(table)}I", *table), *(f + b"\0" * (len(f) % 2) for f in fragments)]
    joined = b"".join(b"\xfe\xff\0\xe0" + struct.pack("<I", len(part)) + part for part in parts)
    return joined + (b"\xfe\xff\xdd\xe0\0\0\0\0" if delimited else b"")


def encapsulated(value: bytes, elements: dict[int, bytes], syntax: str, *more: bytes) -> bytes:
    """A file with encapsulated pixel data."""
    return native(value, elements, *more, syntax=syntax, vr="OB", length=UNDEFINED)


def opened(data: bytes, limits: Limits = Limits()) -> DicomFile:  # noqa: B008
    return read_dicom(data, limits)
