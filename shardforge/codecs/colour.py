"""From a file's own depth and colour model to 8-bit grey or sRGB."""

from __future__ import annotations

from functools import cache, lru_cache

import cv2
import imagecodecs
import numpy as np

from shardforge.codecs.samples import Array, Model, Samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_SPACES: dict[bytes, Model] = {b"GRAY": "grey", b"RGB ": "rgb", b"CMYK": "cmyk"}
_CMS_NAMES: dict[Model, str] = {"grey": "gray", "rgb": "rgb", "cmyk": "cmyk", "lab": "lab"}
# A profile that moves no colour of a 9 x 9 x 9 grid by more than this is sRGB under another name.
_SAME = 1


def to_uint8(samples: Samples) -> tuple[Array, tuple[Flag, ...]]:
    """Scales samples to 8 bits: round(value · 255 / white), alpha included.

    Values without a range of their own (float, signed, over 16 bits) are scaled from the smallest to the largest
    finite one of this picture, and flagged; NaN and infinities become 0.

    Returns:
        uint8 of the same shape, and flags.

    Raises:
        SampleError: ``unsupported`` for alpha without a range and for complex numbers.
    """
    values, white = samples.values, samples.white
    flags: tuple[Flag, ...] = ()
    if values.dtype == np.bool_:
        scaled = values.astype(np.uint8) * np.uint8(255)
    elif values.dtype == np.uint8 and white == 255:
        scaled = values
    elif white is not None and values.dtype.kind in "ui":
        levels = (np.arange(white + 1, dtype=np.uint32) * 255 + white // 2) // white
        scaled = levels.astype(np.uint8)[np.minimum(values, white)]
        flags = (Flag.DEPTH_REDUCED,) if white > 255 else ()
    else:
        scaled = np.floor(to_unit(samples) * 255 + 0.5).astype(np.uint8)
        flags = (Flag.DEPTH_REDUCED, Flag.RANGE_STRETCHED)
    if samples.inverted:
        scaled = _inverted(scaled, samples)
    return scaled, flags


def _inverted(scaled: Array, samples: Samples) -> Array:
    if not samples.alpha:
        return 255 - scaled
    turned = scaled.copy()
    turned[..., :-1] = 255 - turned[..., :-1]
    return turned


def to_unit(samples: Samples) -> Array:
    """Values without a range of their own, scaled from the smallest to the largest finite one: 0 … 1 in float64.

    Raises:
        SampleError: ``unsupported`` for alpha and for complex numbers.
    """
    values = samples.values
    if samples.alpha or values.dtype.kind not in "uif":
        raise SampleError(Reason.UNSUPPORTED, f"{values.dtype} samples, alpha {samples.alpha}")
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    low = float(values.min(where=finite, initial=np.inf))
    high = float(values.max(where=finite, initial=-np.inf))
    if high <= low:
        return np.zeros(values.shape)
    # Halved, so that the distance of two extremes is finite too.
    return np.asarray((np.clip(np.where(finite, values, low), low, high) / 2 - low / 2) / (high / 2 - low / 2))


def to_srgb(pixels: Array, model: Model, profile: bytes | None) -> tuple[Array, tuple[Flag, ...]]:
    """Converts colours (no alpha) to sRGB, with the profile where there is a usable one.

    Relative colorimetric with black point compensation. Without a usable profile grey and RGB count as sRGB, CMYK is
    converted by R = (255 - C) · (255 - K) / 255; CIELAB needs no profile.

    Args:
        pixels: uint8, [H, W] for grey, else [H, W, C].

    Returns:
        uint8 [H, W] (grey without a profile) or [H, W, 3], and flags.
    """
    if model == "lab":
        return transform(pixels, model, imagecodecs.cms_profile("lab4")), ()
    use, flags = profile_use(model, profile)
    if profile is not None and use:
        try:
            convert = _transform_grey if model == "grey" else transform
            return convert(pixels, model, profile), (Flag.ICC_CONVERTED,)
        except (imagecodecs.CmsError, ValueError):
            flags = (Flag.ICC_UNREADABLE,)
    return (_plain_cmyk(pixels) if model == "cmyk" else pixels), flags


def profile_use(model: Model, profile: bytes | None) -> tuple[bool, tuple[Flag, ...]]:
    """Whether colours have to be converted by a profile, and what is wrong with it if it is of no use."""
    if profile is None:
        return False, ()
    if len(profile) < 128 or profile[36:40] != b"acsp":
        return False, (Flag.ICC_UNREADABLE,)
    if _SPACES.get(profile[16:20]) != model:
        return False, (Flag.ICC_MISMATCH,)
    try:
        return not (model == "rgb" and _is_srgb(profile)), ()
    except (imagecodecs.CmsError, ValueError):
        return False, (Flag.ICC_UNREADABLE,)


@cache
def _srgb() -> bytes:
    return bytes(imagecodecs.cms_profile("srgb"))


def transform(pixels: Array, model: Model, profile: bytes, flags: int = 0) -> Array:
    """Colours of a model (uint8 or uint16) to sRGB of the same depth, by a profile.

    Raises:
        imagecodecs.CmsError, ValueError: the profile cannot be used.
    """
    converted = imagecodecs.cms_transform(
        pixels,
        profile,
        _srgb(),
        colorspace=_CMS_NAMES[model],
        outcolorspace="rgb",
        intent=imagecodecs.CMS.INTENT.RELATIVE_COLORIMETRIC,
        flags=imagecodecs.CMS.FLAGS.BLACKPOINTCOMPENSATION | flags,
    )
    return np.asarray(converted)


def _transform_grey(pixels: Array, model: Model, profile: bytes) -> Array:
    """All 256 levels, unoptimised: the optimised conversion interpolates between far fewer."""
    levels = np.arange(256, dtype=np.uint8)[None]
    return np.asarray(transform(levels, model, profile, imagecodecs.CMS.FLAGS.NOOPTIMIZE)[0][pixels])


@lru_cache(maxsize=32)
def _is_srgb(profile: bytes) -> bool:
    steps = np.linspace(0, 255, 9).astype(np.uint8)
    grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3)
    difference = transform(grid, "rgb", profile).astype(np.int16) - grid
    return bool(np.abs(difference).max() <= _SAME)


def _plain_cmyk(pixels: Array) -> Array:
    paper = 255 - pixels.astype(np.uint16)
    return ((paper[..., :3] * paper[..., 3:] + 127) // 255).astype(np.uint8)


def composite(colours: Array, alpha: Array, background: tuple[int, ...], *, premultiplied: bool) -> Array:
    """Lays a picture on a background, in 8 bits, rounded.

    Args:
        colours: uint8 [H, W] or [H, W, 3].
        alpha: uint8 [H, W], 255 is opaque.
        background: one value per channel.
        premultiplied: colours are multiplied with alpha already.
    """
    opacity = alpha.astype(np.uint16)
    if colours.ndim == 3:
        opacity = opacity[..., None]
    behind = np.array(background if colours.ndim == 3 else background[0], np.uint16) * (255 - opacity)
    if premultiplied:
        mixed: Array = np.minimum(colours + (behind + 127) // 255, 255)
    else:
        mixed = (colours * opacity + behind + 127) // 255
    return mixed.astype(np.uint8)


def luma(pixels: Array) -> Array:
    """ITU-R BT.601 luma of RGB, [H, W, 3] → [H, W] uint8, rounded; the integers of OpenCV."""
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY))
