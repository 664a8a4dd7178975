"""What container parsers and decoders hand to each other: a file's header, and its samples before any conversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

Array = NDArray[Any]
Model = Literal["grey", "rgb", "cmyk", "lab"]


@dataclass(frozen=True)
class Header:
    """What a file says about itself, read without decoding any pixel.

    Attributes:
        format: as :func:`shardforge.codecs.sniff.sniff` names it.
        width, height: of the first picture as stored, in pixels, before any orientation or cropping.
        frames: frames of an animation or pages; pictures of other kinds beside the main one (thumbnails, the gain map
            of a phone photograph) do not count.
        counted: ``frames`` is their number; False where the file only says that there are several.
        orientation: the declared EXIF orientation 1..8; None when none is declared or it is unreadable.
        icc: the embedded colour profile, not yet validated.
        pixel_bytes: memory that one decoded pixel may take, at least the 8 of 16-bit RGBA.
        flags: what was noticed on the way.
        frame: the frame or page that is meant; of pages the header tells the size, orientation and profile of this.
    """

    format: str
    width: int
    height: int
    frames: int = 1
    orientation: int | None = None
    icc: bytes | None = None
    pixel_bytes: int = 8
    flags: tuple[Flag, ...] = ()
    frame: int = 0
    counted: bool = True


@dataclass(frozen=True)
class Samples:
    """Decoded samples, still in the file's own colour model, depth and orientation.

    Attributes:
        values: [H, W] (grey) or [H, W, C]; C is that of the model, plus one if ``alpha``. Any integer, bool or float
            dtype.
        model: grey, rgb, cmyk (0 = no ink) or lab (8 bits: L·255/100, a + 128, b + 128; D50).
        white: the value of full intensity; None if the file gives the values no range (float, signed, over 16 bits).
        alpha: the last channel is opacity.
        premultiplied: colours are already multiplied with the opacity.
        inverted: grey whose 0 is white.
        reduction: the picture was decoded at 1/reduction of its size, each side rounded up.
        flags: what the decoder noticed.
    """

    values: Array
    model: Model
    white: int | None = 255
    alpha: bool = False
    premultiplied: bool = False
    inverted: bool = False
    reduction: int = 1
    flags: tuple[Flag, ...] = ()


def plain_samples(values: Array, white: int | None = None) -> Samples:
    """Samples of a decoder whose channel count tells the model: 1 grey, 2 grey + alpha, 3 RGB, 4 RGB + alpha.

    Args:
        white: the value of full intensity; None for the whole range of the (unsigned) dtype.

    Raises:
        SampleError: another number of channels, or not a single picture.
    """
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    channels = 1 if values.ndim == 2 else values.shape[2] if values.ndim == 3 else 0
    if channels not in (1, 2, 3, 4):
        raise SampleError(Reason.UNSUPPORTED, f"samples of shape {values.shape}")
    if white is None and values.dtype.kind == "u" and values.dtype.itemsize <= 2:
        white = int(np.iinfo(values.dtype).max)
    return Samples(values, "grey" if channels <= 2 else "rgb", white, alpha=channels in (2, 4))


def attempt(decode: Callable[[], Array]) -> Array:
    """Runs a decoder of a library and turns whatever it raises into a :class:`SampleError`.

    The libraries have no common family of errors, so everything is caught, but for a lack of memory: that says
    something about the process, not about the file.
    """
    try:
        return np.asarray(decode())
    except (SampleError, MemoryError):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        missing = any(words in text for words in ("NotImplemented", "not implemented", "not supported"))
        raise SampleError(Reason.UNSUPPORTED if missing else Reason.CORRUPT, text) from None
