"""What the header of a stored picture says; no pixel is decoded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import simplejpeg

from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.shards.npy import BadArray, read_npy

FORMS = {"jpg": "jpeg", "png": "png", "webp": "webp", "npy": "npy"}
"""Last part of a field that may hold the image → format of its content."""

TYPE = pa.struct(
    [
        ("name", pa.string()),
        ("format", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("channels", pa.int32()),
        ("depth", pa.int32()),
        ("mask", pa.bool_()),
        ("turned", pa.bool_()),
        ("size", pa.int64()),
        ("sha256", pa.string()),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True)
class PictureFacts:
    """A member that may be the image or a mask.

    Attributes:
        name: its field.
        format: of the content; None if that is no picture.
        width, height: as stored, in pixels. 0 where unknown, as the two below.
        channels, depth: 1 or 3; 8 or 16 bits (arrays: of their type).
        mask: it can be read as a mask: a grey PNG of 8 or 16 bits.
        turned: an orientation is declared, which readers of stored pixels do not apply.
        problem: why it cannot be read, as a :class:`Reason`; or None.
    """

    name: str
    format: str | None
    width: int
    height: int
    channels: int
    depth: int
    mask: bool
    turned: bool
    size: int
    sha256: str
    problem: str | None

    def row(self) -> dict[str, Any]:
        # Flat, and needed for every image: asdict would copy what cannot change.
        return dict(vars(self))


def picture_facts(name: str, payload: bytes, limits: Limits) -> PictureFacts:
    """Looks at one payload."""
    digest = hashlib.sha256(payload).hexdigest()
    try:
        found = _array(payload) if name.rpartition(".")[2] == "npy" else _raster(payload, limits)
    except SampleError as error:
        return PictureFacts(name, None, 0, 0, 0, 0, False, False, len(payload), digest, str(error.reason))
    form, width, height, channels, depth, turned = found
    mask = form == "png" and payload[24:26] in (b"\x08\0", b"\x10\0")
    return PictureFacts(name, form, width, height, channels, depth, mask, turned, len(payload), digest, None)


def _raster(payload: bytes, limits: Limits) -> tuple[str, int, int, int, int, bool]:
    header = read_header(payload, limits)
    channels, depth = 3, 8
    if header.format == "jpeg":
        channels = _jpeg_channels(payload)
    elif header.format == "png":
        depth = 16 if payload[24] == 16 else 8
        channels = 1 if payload[25] in (0, 4) else 3
    return header.format, header.width, header.height, channels, depth, header.orientation not in (None, 1)


def _jpeg_channels(payload: bytes) -> int:
    try:
        _, _, colours, _ = simplejpeg.decode_jpeg_header(payload, strict=False)
    except (ValueError, KeyError) as error:
        raise SampleError(Reason.BAD_HEADER, str(error)) from None
    if colours in ("CMYK", "YCCK"):
        raise SampleError(Reason.UNSUPPORTED, "a JPEG in CMYK, which readers do not convert")
    return 1 if colours == "Gray" else 3


def _array(payload: bytes) -> tuple[str, int, int, int, int, bool]:
    try:
        array = read_npy(memoryview(payload))
    except BadArray as error:
        raise SampleError(Reason.CORRUPT, str(error)) from None
    if array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3)) or not array.size:
        raise SampleError(Reason.UNSUPPORTED, f"an array of shape {array.shape}")
    channels = 1 if array.ndim == 2 else array.shape[2]
    return "npy", array.shape[1], array.shape[0], channels, 16 if array.dtype.str == "<u2" else 8, False
