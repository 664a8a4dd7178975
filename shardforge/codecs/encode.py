"""Pixels → bytes of a sample's member. The same pixels give the same bytes; no metadata is written."""

from __future__ import annotations

import io
from typing import Any, Literal

import imagecodecs
import numpy as np
import simplejpeg
from numpy.typing import NDArray

from shardforge.codecs.png_encode import encode_png
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_LONGEST_SIDE = {"jpg": 65500, "webp": 16383}


def encode(
    pixels: NDArray[np.uint8] | NDArray[np.uint16],
    *,
    format: Literal["jpg", "png", "webp", "npy"],
    quality: int,
    subsampling: Literal["420", "444"],
    lossless: bool = False,
) -> bytes:
    """Encodes an image.

    Args:
        pixels: uint8 [H, W, C], C is 1 or 3; for ``png`` and ``npy`` also uint16.
        format: ``npy`` stores the array as it is; ``webp`` is lossy unless ``lossless``, and stores grey as RGB.
        quality: 1..100, for ``jpg`` and ``webp``.
        subsampling: of the chroma, for ``jpg``.
        lossless: for ``webp``; ``quality`` is then how much effort is made.

    Raises:
        SampleError: ``over_budget`` if a side is longer than the format can hold.
    """
    height, width, channels = pixels.shape
    longest = _LONGEST_SIDE.get(format)
    if longest is not None and max(width, height) > longest:
        raise SampleError(Reason.OVER_BUDGET, f"{width} x {height} pixels, {format} holds {longest} a side")
    values: NDArray[Any] = np.ascontiguousarray(pixels)
    match format:
        case "jpg":
            return bytes(
                simplejpeg.encode_jpeg(
                    values,
                    quality,
                    "GRAY" if channels == 1 else "RGB",
                    "Gray" if channels == 1 else subsampling,
                    fastdct=False,
                )
            )
        case "png":
            return encode_png(values)
        case "webp":
            colours = np.repeat(values, 3, axis=2) if channels == 1 else values
            return bytes(imagecodecs.webp_encode(colours, level=quality, lossless=lossless, numthreads=1))
        case "npy":
            return encode_array(values)


def encode_array(values: NDArray[Any]) -> bytes:
    """A plain ``.npy`` file, never with pickled objects."""
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=False)
    return buffer.getvalue()


def encode_mask(mask: NDArray[Any]) -> bytes:
    """Labels as a grey PNG of 8 bits (uint8) or 16 bits (any other integers).

    Args:
        mask: [H, W], integers.

    Raises:
        SampleError: ``unsupported`` for labels outside 0..65535.
    """
    if mask.dtype != np.uint8:
        if mask.size and (int(mask.min()) < 0 or int(mask.max()) > 65535):
            raise SampleError(Reason.UNSUPPORTED, "labels outside 0..65535")
        mask = mask.astype(np.uint16)
    return encode_png(mask)
