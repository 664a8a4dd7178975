"""Bytes of an image file → upright sRGB or grey pixels of 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs import (
    apng,
    avif_frames,
    gif,
    gif_frames,
    isobmff,
    jpeg,
    jxl,
    others,
    png,
    pnm,
    tiff,
    webp,
    webp_frames,
)
from shardforge.codecs.colour import composite, luma, to_srgb, to_uint8
from shardforge.codecs.colour16 import composite16, luma16, reduce16, to_srgb16, to_uint16
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.codecs.mask import decode_mask
from shardforge.codecs.samples import Array, Header, Samples
from shardforge.errors import SampleError
from shardforge.geometry.orientation import apply_orientation, oriented_size
from shardforge.shards.catalogue import Flag, Reason

__all__ = ["DECODERS", "Picture", "decode", "decode_mask"]

Decoder = tuple[str, Callable[[bytes, Header], Samples]]

# Noticed, but without any bearing on the pixels.
_HARMLESS = frozenset((Flag.EXIF_UNREADABLE, Flag.ICC_UNREADABLE, Flag.ICC_MISMATCH))
_PILLOW: Decoder = ("pillow", others.decode_pillow)
# Who decodes what. Nothing here depends on the libraries that Pillow happened to be built with.
# By scripts/bench_decoders.py each is the fastest or within a quarter of it, with equal pixels; but for BMP, where
# cv2 would save 1 ms per megapixel, too little to learn its many variants anew.
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
    "jxl": ("imagecodecs", jxl.decode),
    "qoi": ("imagecodecs", others.decode_qoi),
    "psd": _PILLOW,
    "ico": _PILLOW,
    "pcx": _PILLOW,
    "tga": _PILLOW,
}
# Who decodes the frames after the first, and the first of an APNG, whose default image may be none; formats not named
# here have none that can be reached.
_LATER: dict[str, Decoder] = {
    "png": ("imagecodecs", apng.decode),
    "webp": ("imagecodecs", webp_frames.decode),
    "tiff": ("imagecodecs", tiff.decode),
    "gif": ("imagecodecs", gif_frames.decode),
    "avif": ("imagecodecs", avif_frames.decode),
}


@dataclass(frozen=True)
class Picture:
    """A decoded picture.

    Attributes:
        pixels: uint8 or uint16 [H, W, C], C-contiguous; C is the number of channels asked for. Upright, sRGB, without
            alpha. [H, W] is the source's size, or 1/``reduction`` of it, rounded up.
        source_width, source_height: of the upright picture, in pixels.
        format: of the content, as :func:`shardforge.codecs.sniff.sniff` names it.
        decoder: the library that decoded, and by how much it reduced.
        flags: what was noticed, without repetition.
        frames: frames or pages in the file.
        counted: ``frames`` is their number; False where the file only says that there are several.
        orientation: the one that was applied, 1..8.
        reduction: 1, or 2, 4, 8 where the decoder reduced the picture on the way.
        untouched: any plain decoder gets these very pixels from the file: it has this number of channels, the depth
            asked for, no transparency, orientation, foreign profile, further frames or damage.
    """

    pixels: NDArray[np.uint8] | NDArray[np.uint16]
    source_width: int
    source_height: int
    format: str
    decoder: str
    flags: tuple[Flag, ...]
    frames: int
    orientation: int
    reduction: int = 1
    untouched: bool = False
    counted: bool = True

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
    depth: Literal[8, 16] = 8,
    frame: int | None = None,
    keep_damaged: bool = False,
) -> Picture:
    """Decodes one frame or page of an image file, judged by its content alone.

    Samples are scaled to ``depth`` bits, colours are converted to sRGB by the embedded profile, transparency is laid
    on the background, the declared orientation is applied, in this order. Grey is repeated for three channels; for
    one channel colours become BT.601 luma.

    Args:
        data: the whole file.
        background: sRGB colour under transparent pixels.
        needed: given width and height of the upright source, the width and height that are enough; a decoder that can
            reduce on the way (JPEG) may then return a picture of 1/2, 1/4 or 1/8 that is no smaller.
        depth: of the result. 8 reduces what is deeper; 16 keeps up to 16 bits, and scales fewer to the full range.
        frame: which frame or page, as a viewer shows it: composited on its canvas. None: the first, flagged if there
            are more; of an APNG its default image, as still viewers show it.
        keep_damaged: keep a JPEG with damaged data, flagged, unless a part of the picture is missing.

    Raises:
        SampleError: the file cannot become a picture; the reason says why.
        MemoryError: the process has not enough memory for a picture within the limits.
    """
    header = read_header(data, limits, frame or 0)
    if header.frame and header.format not in _LATER:
        raise SampleError(Reason.UNSUPPORTED, f"frames of {header.format} after the first")
    apart = header.frame > 0 or (header.format == "png" and header.frames > 1 and frame is not None)
    decoder, run = (_LATER if apart else DECODERS)[header.format]
    orientation = header.orientation or 1
    if needed is not None and header.format == "jpeg":
        enough = needed(*oriented_size(header.width, header.height, orientation))
        samples = jpeg.decode(data, header, oriented_size(*enough, orientation), keep_damaged=keep_damaged)
    elif header.format == "jpeg":
        samples = jpeg.decode(data, header, keep_damaged=keep_damaged)
    else:
        samples = run(data, header)
    if samples.reduction > 1:
        decoder = f"{decoder} 1/{samples.reduction}"
    flags = [*header.flags, *samples.flags]
    # Transparency is laid on the background at full depth: rounded before, it would be off by more than a level.
    reduced = depth == 8 and samples.alpha and samples.white is not None and samples.white > 255
    deep = depth == 16 or reduced
    values, noticed = to_uint16(samples) if deep else to_uint8(samples)
    flags += (Flag.DEPTH_REDUCED,) if reduced else noticed
    alpha = values[..., -1] if samples.alpha else None
    colours = values[..., :-1] if samples.alpha else values
    if samples.model == "grey" and colours.ndim == 3:
        colours = colours[..., 0]
    convert = to_srgb16 if deep else to_srgb
    pixels, noticed = convert(np.ascontiguousarray(colours), samples.model, header.icc)
    flags += noticed
    if alpha is not None and int(alpha.min()) < np.iinfo(alpha.dtype).max:
        pixels = _laid_on(pixels, alpha, background, channels, samples.premultiplied)
        flags.append(Flag.ALPHA_COMPOSITED)
    if orientation != 1:
        flags.append(Flag.ORIENTED)
    if header.frames > 1:
        flags.append(Flag.FIRST_FRAME if frame is None else Flag.FRAME)
    pixels = _with_channels(pixels, channels)
    pixels = apply_orientation(reduce16(pixels) if reduced else pixels, orientation)
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
        counted=header.counted,
    )


def _is_untouched(samples: Samples, channels: int, flags: list[Flag]) -> bool:
    plain = samples.model == ("rgb" if channels == 3 else "grey") and not samples.alpha and samples.reduction == 1
    return plain and not set(flags) - _HARMLESS


def _laid_on(
    pixels: Array, alpha: Array, background: tuple[int, int, int], channels: int, premultiplied: bool
) -> Array:
    deep = pixels.dtype == np.uint16
    lay, colour = (composite16, tuple(level * 257 for level in background)) if deep else (composite, background)
    if pixels.ndim == 2:
        if channels == 1:
            grey = int(_luma(np.array([[colour]], pixels.dtype))[0, 0])
            return lay(pixels, alpha, (grey,), premultiplied=premultiplied)
        pixels = _with_channels(pixels, 3)
    return lay(pixels, alpha, colour, premultiplied=premultiplied)


def _luma(pixels: Array) -> Array:
    return luma16(pixels) if pixels.dtype == np.uint16 else luma(pixels)


def _with_channels(pixels: Array, channels: int) -> Array:
    if pixels.ndim == 2:
        return pixels[:, :, None] if channels == 1 else np.repeat(pixels[:, :, None], 3, axis=2)
    return _luma(pixels)[:, :, None] if channels == 1 else pixels
