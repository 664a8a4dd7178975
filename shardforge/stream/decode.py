"""Payloads → values. Sizes are judged from the header, before anything is decoded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import simplejpeg

from shardforge.shards.class_text import class_id
from shardforge.shards.manifest import FieldInfo
from shardforge.shards.npy import BadArray, read_npy

Array = npt.NDArray[Any]
Reduce = Callable[[int, int], int]
"""Height and width of a JPEG → by which of 1, 2, 4 and 8 it may be reduced."""
ImageDecoder = Callable[[memoryview, Reduce | None, bool], Array]
"""Payload, ``reduce`` and ``copy``, as :func:`decode` has them → image."""

MAX_PIXELS = 2**28
"""Width × height of one picture: what a WebP can have at most."""
_SHOWN = 32
_NPY_HEADER = 10_000
_PNG_START = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


class Undecodable(ValueError):
    """The payload is not what its field says.

    Attributes:
        tolerable: the decoder complains, but could make a picture (``strict=False``).
    """

    def __init__(self, what: str, *, tolerable: bool = False) -> None:
        super().__init__(what)
        self.tolerable = tolerable


def decode(
    payload: memoryview,
    field: str,
    info: FieldInfo,
    channels: int,
    *,
    depth: int = 8,
    strict: bool = True,
    reduce: Reduce | None = None,
    copy: bool = True,
) -> Any:
    """The value of a stored field.

    Args:
        payload: the member's bytes.
        field: its name; the part after the last dot is the format.
        channels, depth: of the dataset's images: 1 or 3; 8 or 16 bits.
        strict: refuse a JPEG about whose data the decoder has something to say.
        reduce: asked for the scale at which to decode a JPEG image.
        copy: False: an ``npy`` image may be a read-only view of the payload.

    Returns:
        By ``info.kind``: ``image`` uint8 or uint16 [H, W, C] in RGB order (``npy``: any plain dtype); ``mask`` uint8
        or uint16 [H, W]; ``picture`` uint8 [H, W, 3] in RGB order, whatever ``channels`` and ``depth``; ``volume``
        [Z, Y, X, 1] of any plain dtype; ``array`` as stored; ``class`` int; ``text`` str; ``json`` what it says.

    Raises:
        Undecodable: it cannot be decoded.
    """
    form = field.rpartition(".")[2]
    if info.kind == "image":
        return _image(payload, form, channels, depth, strict, reduce, copy)
    if info.kind == "volume":
        return _volume(payload, copy)
    if info.kind == "picture":
        return _image(payload, picture_format(payload) or form, 3, 8, strict, reduce, copy)
    if info.kind == "mask":
        return _mask(payload, form)
    if info.kind == "array":
        return _array(payload)
    try:
        if info.kind == "text":
            return str(payload, "utf-8")
        if info.kind == "json":
            return json.loads(bytes(payload))
        number = class_id(bytes(payload))
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"no valid {info.kind} ({error})") from None
    if number is None:
        raise Undecodable(f"no valid class: {bytes(payload[:_SHOWN])!r} are no digits within int64")
    return number


def image_decoder(field: str, channels: int, depth: int) -> ImageDecoder:
    """:func:`decode` for the images of one field, strictly.

    Training asks for thousands of them a second: of what kind they are is found out once.
    """
    form = field.rpartition(".")[2]
    if form == "jpg":
        return lambda payload, reduce, copy: _jpeg(payload, channels, True, reduce)
    if form == "npy":
        return lambda payload, reduce, copy: _array_image(payload, channels, copy)
    return lambda payload, reduce, copy: _raster_image(payload, form, channels, depth)


def picture_format(payload: memoryview) -> str | None:
    """``jpg``, ``png`` or ``webp``, by how the bytes begin; None for anything else."""
    start = bytes(payload[:12])
    if start.startswith(b"\xff\xd8"):
        return "jpg"
    if start.startswith(b"\x89PNG"):
        return "png"
    return "webp" if start.startswith(b"RIFF") and start[8:] == b"WEBP" else None


def _image(
    payload: memoryview, form: str, channels: int, depth: int, strict: bool, reduce: Reduce | None, copy: bool
) -> Array:
    if form == "jpg":
        return _jpeg(payload, channels, strict, reduce)
    if form == "npy":
        return _array_image(payload, channels, copy)
    return _raster_image(payload, form, channels, depth)


def _array_image(payload: memoryview, channels: int, copy: bool) -> Array:
    try:
        array = read_npy(payload, copy=copy)
    except BadArray as error:
        raise Undecodable(str(error)) from None
    image = array[..., None] if array.ndim == 2 else array
    if image.ndim != 3 or image.shape[2] != channels:
        raise Undecodable(f"an array of shape {array.shape} where [H, W, {channels}] belongs")
    return image


def _raster_image(payload: memoryview, form: str, channels: int, depth: int) -> Array:
    how = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
    image = _raster(payload, form, how | cv2.IMREAD_ANYDEPTH if depth == 16 else how)
    if depth == 16 and image.dtype != np.uint16:
        raise Undecodable("a picture of 8 bits where 16 belong")
    if channels == 1:
        return image[..., None]
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB, dst=image))


def _volume(payload: memoryview, copy: bool) -> Array:
    array = _array(payload, copy)
    if array.ndim != 3:
        raise Undecodable(f"an array of shape {array.shape} where [Z, Y, X] belongs")
    # One channel, last as in images: windows become channels there.
    return array[..., None]


def _jpeg(payload: memoryview, channels: int, strict: bool, reduce: Reduce | None) -> Array:
    try:
        height, width, _, _ = simplejpeg.decode_jpeg_header(payload, strict=False)
    except (ValueError, KeyError) as error:
        # KeyError: a header that ends before it names its colours.
        raise Undecodable(f"no valid JPEG header ({error})") from None
    _bounded(width, height)
    factor = 1 if reduce is None else reduce(height, width)
    try:
        return simplejpeg.decode_jpeg(  # type: ignore[no-any-return]
            payload,
            "RGB" if channels == 3 else "GRAY",
            min_height=-(-height // factor) if factor > 1 else 0,
            min_width=-(-width // factor) if factor > 1 else 0,
            strict=strict,
        )
    except ValueError as error:
        raise Undecodable(f"no valid JPEG ({error})", tolerable=strict) from None


def _mask(payload: memoryview, form: str) -> Array:
    image = _raster(payload, form, cv2.IMREAD_UNCHANGED)
    # Palettes and fewer than 8 bits come out as colours or stretched, not as the stored numbers.
    depth_and_colour = payload[24:26].tolist()
    if form != "png" or depth_and_colour not in ([8, 0], [16, 0]):
        raise Undecodable("a mask is a grey PNG of 8 or 16 bits")
    return image


def _raster(payload: memoryview, form: str, how: int) -> Array:
    if form == "png":
        if bytes(payload[: len(_PNG_START)]) != _PNG_START:
            raise Undecodable("no PNG")
        _bounded(int.from_bytes(payload[16:20], "big"), int.from_bytes(payload[20:24], "big"))
    elif form != "webp" or bytes(payload[8:12]) != b"WEBP":
        raise Undecodable(f"no {form}")
    try:
        # Stored pictures are upright; an orientation tag that survived must not turn them again.
        image = cv2.imdecode(np.frombuffer(payload, np.uint8), how | cv2.IMREAD_IGNORE_ORIENTATION)
    except cv2.error as error:
        raise Undecodable(f"no valid {form} ({str(error).strip()})") from None
    if image is None:
        raise Undecodable(f"no valid {form}")
    return np.asarray(image)


def _bounded(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Undecodable(f"{width} × {height} pixels are more than {MAX_PIXELS}")


def _array(payload: memoryview, copy: bool = True) -> Array:
    try:
        return read_npy(payload, copy=copy)
    except BadArray as error:
        raise Undecodable(str(error)) from None
