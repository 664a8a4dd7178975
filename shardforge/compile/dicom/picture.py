"""Frames of a DICOM item → the array that is stored: windows as channels, modality values, or colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.compile.dicom.frame import Frame
from shardforge.compile.dicom.three_windows import WINDOWS, render_three
from shardforge.dicom.choose import Choice, choose
from shardforge.dicom.render import render
from shardforge.dicom.voi import VoiTables
from shardforge.dicom.windows import Given
from shardforge.errors import SampleError
from shardforge.geometry.resample import cut_out, resize_values
from shardforge.geometry.resize import Placement, resize_image, resize_mask
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Flag, Reason
from shardforge.shards.statistics import Histogram

_BLACK = (0, 0, 0)


@dataclass(frozen=True)
class Shown:
    """One frame as it is stored.

    Attributes:
        pixels: uint8 or uint16 [H, W, k], or modality values [H, W, 1].
        choices: the window of each channel; empty for colours and modality values.
        clip_low, clip_high: per channel, the share of unpadded pixels at the window's ends.
        counts: of the pixels, as :func:`shardforge.compile.count_levels.count_levels` has them, where they were
            counted already.
    """

    pixels: NDArray[Any]
    choices: tuple[Choice, ...] = ()
    clip_low: tuple[float, ...] = ()
    clip_high: tuple[float, ...] = ()
    counts: Histogram | None = None

    @property
    def flags(self) -> tuple[Flag, ...]:
        return tuple(flag for choice in self.choices for flag in choice.flags)


def show(frame: Frame, placement: Placement, recipe: Recipe, modality: str, tables: VoiTables) -> Shown:
    """Resamples a frame and applies the recipe's windows.

    Args:
        modality: the Modality attribute; percentiles of MR leave out zeros.

    Raises:
        SampleError: ``unsupported``: a colour image where windows or modality values are asked for, or modality
            values that the recipe's type would round.
    """
    if frame.coloured:
        return Shown(_colours(frame, placement, recipe))
    fill = _darkest(frame) if _has_border(placement) else 0.0
    values = resize_values(cut_out(frame.values, placement), placement, recipe.resampler, fill)
    if recipe.modality_values:
        return Shown(stored_values(values, recipe)[:, :, None])
    mask = _mask(frame, placement)
    choices = choose(
        recipe.windows,
        frame.meaning,
        values,
        mask,
        function=recipe.dicom.voi,
        nonzero=modality == "MR",
        shown_bits=frame.shown_bits,
    )
    vois, inverted = [choice.voi for choice in choices], frame.meaning.inverted
    if len(vois) == WINDOWS and recipe.depth == 8 and values.dtype == np.int16:
        picture, counts = render_three(values, mask, vois, tables, inverted=inverted)
        return Shown(picture.pixels, choices, picture.clip_low, picture.clip_high, counts)
    found = render(values, mask, vois, tables, inverted=inverted, bits=recipe.depth)
    return Shown(found.pixels, choices, found.clip_low, found.clip_high)


def with_channels(shown: Sequence[Shown], channels: int) -> NDArray[Any]:
    """The pixels of an item's frames, channel after channel; one channel is repeated where three are stored."""
    pixels = shown[0].pixels if len(shown) == 1 else np.concatenate([one.pixels for one in shown], axis=2)
    if pixels.shape[2] == 1 and channels == 3:
        pixels = np.repeat(pixels, 3, axis=2)
    return np.ascontiguousarray(pixels)


def stored_values(values: NDArray[Any], recipe: Recipe) -> NDArray[Any]:
    """Modality values in the recipe's type.

    Raises:
        SampleError: ``unsupported`` where int16 would round or cut off.
    """
    if recipe.dicom.values == "float32":
        return values.astype(np.float32, copy=False)
    if values.dtype == np.float32:
        raise SampleError(Reason.UNSUPPORTED, "modality values are fractional: --values float32 keeps them")
    limits = np.iinfo(np.int16)
    if values.dtype != np.int16 and (values.min() < limits.min or values.max() > limits.max):
        raise SampleError(Reason.UNSUPPORTED, "modality values beyond int16: --values float32 keeps them")
    return values.astype(np.int16, copy=False)


def _mask(frame: Frame, placement: Placement) -> NDArray[np.bool_] | None:
    """Where the canvas shows padding, or nothing."""
    if frame.mask is None and not _has_border(placement):
        return None
    mask = np.zeros(frame.values.shape, np.bool_) if frame.mask is None else frame.mask
    return resize_mask(cut_out(mask, placement), placement, fill=1)


def _has_border(placement: Placement) -> bool:
    return (placement.width, placement.height) != (placement.inner_width, placement.inner_height)


def _darkest(frame: Frame) -> float:
    """What lies around the picture: nothing is darker than the darkest measured."""
    return float(frame.values.max() if frame.meaning.inverted else frame.values.min())


def _colours(frame: Frame, placement: Placement, recipe: Recipe) -> NDArray[Any]:
    explicit = any(isinstance(window, Given) for window in recipe.windows)
    if explicit or recipe.modality_values:
        raise SampleError(Reason.UNSUPPORTED, "a colour image has no modality values to apply a window to")
    pixels: NDArray[Any] = resize_image(cut_out(frame.values, placement), placement, recipe.resampler, _BLACK)
    if recipe.depth == 16:
        pixels = pixels.astype(np.uint16) * np.uint16(257)
    if recipe.stored_channels != 3:
        # BT.601 luma, as Pillow rounds it.
        weighted = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
        pixels = ((weighted + 0x8000) >> 16).astype(pixels.dtype)[:, :, None]
    return pixels
