"""Bytes of an image file → upright 8-bit sRGB or grey pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs import gif, isobmff, jpeg, others, png, pnm, tiff, webp
from shardforge.codecs.colour import composite, luma, to_srgb, to_uint8
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.codecs.mask import decode_mask
from shardforge.codecs.samples import Array, Header, Samples
from shardforge.geometry.orientation import apply_orientation, oriented_size
from shardforge.shards.catalogue import Flag

__all__ = ["DECODERS", "Picture", "decode", "decode_mask"]

Decoder = tuple[str, Callable[[bytes, Header], Samples]]

# Noticed, but without any bearing on the pixels.
_HARMLESS = frozenset((Flag.EXIF_UNREADABLE, Flag.ICC_UNREADABLE, Flag.ICC_MISMATCH))
_PILLOW: Decoder = ("pillow", others.decode_pillow)
# Who decodes what. Nothing here depends on the libraries that Pillow happened to be built with.
DECODERS: dict[str, Decoder] = {
    "jpeg": ("simplejpeg", jpeg.decode),
    "png": ("imagecodecs", png.decode),
    "webp": ("imagecodecs", webp.decode),
    "tiff": ("imagecodecs", tiff.decode),
    "gif": ("imagecodecs", gif.decode),
    "bmp": _PILLOW,
    "pnm": ("numpy", pnm.decode),
    "avif": ("imagecodecs", isobmff.decode_avif),
    "heif": ("pillow-heif", isobmff.decode_heif),
    "jpeg2000": ("imagecodecs", others.decode_jpeg2000),
    "jxl": ("imagecodecs", others.decode_jxl),
    "qoi": ("imagecodecs", others.decode_qoi),
    "psd": _PILLOW,
    "ico": _PILLOW,
    "pcx": _PILLOW,
    "tga": _PILLOW,
}


@dataclass(frozen=True)
class Picture:
    """A decoded picture.

    Attributes:
        pixels: uint8 [H, W, C], C-contiguous; C is the number of channels asked for. Upright, sRGB, without alpha.
            [H, W] is the source's size, or 1/``reduction`` of it, rounded up.
        source_width, source_height: of the upright picture, in pixels.
        format: of the content, as :func:`shardforge.codecs.sniff.sniff` names it.
        decoder: the library that decoded, and by how much it reduced.
        flags: what was noticed, without repetition.
        frames: frames or pages in the file; the first was taken.
        orientation: the one that was applied, 1..8.
        reduction: 1, or 2, 4, 8 where the decoder reduced the picture on the way.
        untouched: any plain decoder gets these very pixels from the file: it has this number of channels, 8 bits, no
            transparency, orientation, foreign profile, further frames or damage.
    """

    pixels: NDArray[np.uint8]
    source_width: int
    source_height: int
    format: str
    decoder: str
    flags: tuple[Flag, ...]
    frames: int
    orientation: int
    reduction: int = 1
    untouched: bool = False

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Where the picture lies in :attr:`pixels`: left, top, right, bottom.

        All of it, unless reduced: a side that does not divide evenly then ends in a part of a pixel, at the edge
        where the orientation has put it.
        """
        height, width = self.pixels.shape[:2]
        inner_width, inner_height = self.source_width / self.reduction, self.source_height / self.reduction
        left = width - inner_width if self.orientation in (2, 3, 6, 7) else 0.0
        top = height - inner_height if self.orientation in (3, 4, 7, 8) else 0.0
        return left, top, left + inner_width, top + inner_height


def decode(
    data: bytes,
    *,
    channels: Literal[1, 3],
    background: tuple[int, int, int],
    limits: Limits,
    needed: Callable[[int, int], tuple[int, int]] | None = None,
) -> Picture:
    """Decodes the first frame or page of an image file, judged by its content alone.

    Depth is reduced to 8 bits, colours are converted to sRGB by the embedded profile, transparency is laid on the
    background, the declared orientation is applied, in this order. Grey is repeated for three channels; for one
    channel colours become BT.601 luma.

    Args:
        data: the whole file.
        background: sRGB colour under transparent pixels.
        needed: given width and height of the upright source, the width and height that are enough; a decoder that can
            reduce on the way (JPEG) may then return a picture of 1/2, 1/4 or 1/8 that is no smaller.

    Raises:
        SampleError: the file cannot become a picture; the reason says why.
        MemoryError: the process has not enough memory for a picture within the limits.
    """
    header = read_header(data, limits)
    decoder, run = DECODERS[header.format]
    orientation = header.orientation or 1
    if needed is not None and header.format == "jpeg":
        enough = needed(*oriented_size(header.width, header.height, orientation))
        samples = jpeg.decode(data, header, oriented_size(*enough, orientation))
    else:
        samples = run(data, header)
    if samples.reduction > 1:
        decoder = f"{decoder} 1/{samples.reduction}"
    flags = [*header.flags, *samples.flags]
    values, noticed = to_uint8(samples)
    flags += noticed
    alpha = values[..., -1] if samples.alpha else None
    colours = values[..., :-1] if samples.alpha else values
    if samples.model == "grey" and colours.ndim == 3:
        colours = colours[..., 0]
    pixels, noticed = to_srgb(np.ascontiguousarray(colours), samples.model, header.icc)
    flags += noticed
    if alpha is not None and int(alpha.min()) < 255:
        pixels = _laid_on(pixels, alpha, background, channels, samples.premultiplied)
        flags.append(Flag.ALPHA_COMPOSITED)
    if orientation != 1:
        flags.append(Flag.ORIENTED)
    if header.frames > 1:
        flags.append(Flag.FIRST_FRAME)
    pixels = apply_orientation(_with_channels(pixels, channels), orientation)
    height, width = pixels.shape[:2]
    if samples.reduction > 1:
        width, height = oriented_size(header.width, header.height, orientation)
    return Picture(
        pixels=pixels,
        source_width=width,
        source_height=height,
        format=header.format,
        decoder=decoder,
        flags=tuple(dict.fromkeys(flags)),
        frames=header.frames,
        orientation=orientation,
        reduction=samples.reduction,
        untouched=_is_untouched(samples, channels, flags),
    )


def _is_untouched(samples: Samples, channels: int, flags: list[Flag]) -> bool:
    plain = samples.model == ("rgb" if channels == 3 else "grey") and not samples.alpha and samples.reduction == 1
    return plain and not set(flags) - _HARMLESS


def _laid_on(
    pixels: Array, alpha: Array, background: tuple[int, int, int], channels: int, premultiplied: bool
) -> Array:
    if pixels.ndim == 2:
        if channels == 1:
            grey = int(luma(np.array([[background]], np.uint8))[0, 0])
            return composite(pixels, alpha, (grey,), premultiplied=premultiplied)
        pixels = _with_channels(pixels, 3)
    return composite(pixels, alpha, background, premultiplied=premultiplied)


def _with_channels(pixels: Array, channels: int) -> Array:
    if pixels.ndim == 2:
        return pixels[:, :, None] if channels == 1 else np.repeat(pixels[:, :, None], 3, axis=2)
    return luma(pixels)[:, :, None] if channels == 1 else pixels
