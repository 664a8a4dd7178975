"""From a file's own depth and colour model to 16-bit grey or sRGB: :mod:`shardforge.codecs.colour` at full depth."""

from __future__ import annotations

from functools import lru_cache

import imagecodecs
import numpy as np

from shardforge.codecs.colour import profile_use, to_unit, transform
from shardforge.codecs.samples import Array, Model, Samples
from shardforge.shards.catalogue import Flag

WHITE = 65535
# The optimised conversion interpolates in a coarse grid: off by up to 66 levels where this is off by 4.
_EXACT = int(imagecodecs.CMS.FLAGS.NOOPTIMIZE)


def to_uint16(samples: Samples) -> tuple[Array, tuple[Flag, ...]]:
    """Scales samples to 16 bits: round(value · 65535 / white), alpha included; v · 257 for 8 bits.

    Values without a range of their own are stretched as :func:`shardforge.codecs.colour.to_uint8` does.

    Returns:
        uint16 of the same shape, and flags.

    Raises:
        SampleError: ``unsupported`` for alpha without a range and for complex numbers.
    """
    values, white = samples.values, samples.white
    flags: tuple[Flag, ...] = ()
    if values.dtype == np.bool_:
        scaled, flags = values.astype(np.uint16) * np.uint16(WHITE), (Flag.DEPTH_RAISED,)
    elif values.dtype == np.uint16 and white == WHITE:
        scaled = values
    elif white is not None and values.dtype.kind in "ui":
        levels = (np.arange(white + 1, dtype=np.uint64) * WHITE + white // 2) // white
        scaled, flags = levels.astype(np.uint16)[np.minimum(values, white)], (Flag.DEPTH_RAISED,)
    else:
        scaled, flags = np.floor(to_unit(samples) * WHITE + 0.5).astype(np.uint16), (Flag.RANGE_STRETCHED,)
    if samples.inverted:
        scaled = scaled.copy()
        colours = scaled[..., :-1] if samples.alpha else scaled
        np.subtract(WHITE, colours, out=colours)
    return scaled, flags


def to_srgb16(pixels: Array, model: Model, profile: bytes | None) -> tuple[Array, tuple[Flag, ...]]:
    """Converts colours (no alpha) to sRGB as :func:`shardforge.codecs.colour.to_srgb` does, in 16 bits.

    Args:
        pixels: uint16, [H, W] for grey, else [H, W, C]. CIELAB: its 8-bit encoding · 257.

    Returns:
        uint16 [H, W] (grey without a profile) or [H, W, 3], and flags.
    """
    if model == "lab":
        lab = (pixels // 257).astype(np.uint8)
        return transform(lab, model, imagecodecs.cms_profile("lab4")).astype(np.uint16) * np.uint16(257), ()
    use, flags = profile_use(model, profile)
    if profile is not None and use:
        try:
            if model == "grey":
                return _levels(profile)[pixels], (Flag.ICC_CONVERTED,)
            return transform(pixels, model, profile, _EXACT), (Flag.ICC_CONVERTED,)
        except (imagecodecs.CmsError, ValueError):
            flags = (Flag.ICC_UNREADABLE,)
    return (_plain_cmyk(pixels) if model == "cmyk" else pixels), flags


@lru_cache(maxsize=8)
def _levels(profile: bytes) -> Array:
    """All 65536 grey levels as sRGB."""
    levels = np.arange(WHITE + 1, dtype=np.uint16)[None]
    return np.asarray(transform(levels, "grey", profile, _EXACT)[0])


def _plain_cmyk(pixels: Array) -> Array:
    paper = WHITE - pixels.astype(np.uint32)
    return ((paper[..., :3] * paper[..., 3:] + WHITE // 2) // WHITE).astype(np.uint16)


def composite16(colours: Array, alpha: Array, background: tuple[int, ...], *, premultiplied: bool) -> Array:
    """Lays a picture on a background, rounded.

    Args:
        colours: uint16 [H, W] or [H, W, 3].
        alpha: uint16 [H, W], 65535 is opaque.
        background: one 16-bit value per channel.
        premultiplied: colours are multiplied with alpha already.
    """
    # 65535² + 32767 is less than 2^32.
    opacity = alpha.astype(np.uint32)
    if colours.ndim == 3:
        opacity = opacity[..., None]
    behind = np.array(background if colours.ndim == 3 else background[0], np.uint32) * (WHITE - opacity)
    if premultiplied:
        mixed: Array = np.minimum(colours + (behind + WHITE // 2) // WHITE, WHITE)
    else:
        mixed = (colours * opacity + behind + WHITE // 2) // WHITE
    return mixed.astype(np.uint16)


def luma16(pixels: Array) -> Array:
    """ITU-R BT.601 luma of RGB, [H, W, 3] → [H, W] uint16, rounded."""
    red, green, blue = (pixels[..., channel].astype(np.uint32) for channel in range(3))
    # 0.299, 0.587, 0.114 in 1/65536; the sum stays below 2^32.
    return ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16).astype(np.uint16)


def reduce16(pixels: Array) -> Array:
    """uint16 → uint8: round(value / 257)."""
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
