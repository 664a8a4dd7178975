"""Where a picture ends up on its canvas, and bringing pixels and labels there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from shardforge.errors import SampleError, UsageError
from shardforge.geometry.kernels import KERNELS, Resampler
from shardforge.shards.catalogue import Reason

ResizeMode = Literal["shortest", "longest", "exact", "pad", "none"]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Placement:
    """Where a picture of one size lies on a canvas of another. All in pixels.

    Attributes:
        source_width, source_height: of the upright source, or of what was cut out of it.
        width, height: of the canvas.
        inner_width, inner_height: of the resized picture.
        left, top: its place on the canvas.
        crop_left, crop_top: where in the whole picture the source was cut out.
        whole_width, whole_height: of the whole picture; None: nothing was cut off.
    """

    source_width: int
    source_height: int
    width: int
    height: int
    inner_width: int
    inner_height: int
    left: int = 0
    top: int = 0
    crop_left: int = 0
    crop_top: int = 0
    whole_width: int | None = None
    whole_height: int | None = None

    @property
    def whole(self) -> tuple[int, int]:
        """Width and height of the picture that coordinates refer to."""
        return self.whole_width or self.source_width, self.whole_height or self.source_height

    @property
    def scale_x(self) -> float:
        """Canvas pixels per source pixel, horizontally: x on the canvas is x of the picture · scale_x + offset_x."""
        return self.inner_width / self.source_width

    @property
    def scale_y(self) -> float:
        """As :attr:`scale_x`, vertically."""
        return self.inner_height / self.source_height

    @property
    def offset_x(self) -> float:
        """Where the left edge of the whole picture lies on the canvas."""
        return self.left - self.crop_left * self.scale_x

    @property
    def offset_y(self) -> float:
        """Where the top edge of the whole picture lies on the canvas."""
        return self.top - self.crop_top * self.scale_y

    @property
    def identity(self) -> bool:
        """The canvas is the source."""
        source = (self.source_width, self.source_height)
        return source == (self.width, self.height) == (self.inner_width, self.inner_height)


def place(
    width: int,
    height: int,
    *,
    mode: ResizeMode,
    size: int | tuple[int, int],
    enlarge: bool,
    max_pixels: int = 200_000_000,
) -> Placement:
    """Decides the size of a picture and its place on the canvas.

    ``shortest`` and ``longest`` bring that side to ``size`` and keep the aspect; ``exact`` stretches; ``pad`` keeps
    the aspect inside a canvas of exactly ``size``, centred (an odd pixel goes to the right and below); ``none``
    changes nothing. Sides are rounded half up and at least 1. Only ``enlarge`` makes a side longer.

    Args:
        width, height: of the source, at least 1.
        size: one number, or (width, height) for ``exact`` and ``pad``, where one number means a square.
        max_pixels: the largest canvas.

    Raises:
        UsageError: ``size`` does not fit the mode.
        SampleError: ``too_small`` where ``exact`` would have to enlarge; ``over_budget`` for too large a canvas.
    """
    placement = _place(width, height, mode, _box(mode, size), enlarge)
    if placement.width * placement.height > max_pixels:
        raise SampleError(
            Reason.OVER_BUDGET, f"resizing gives {placement.width} x {placement.height} pixels, {max_pixels} allowed"
        )
    return placement


def _box(mode: ResizeMode, size: int | tuple[int, int]) -> tuple[int, int]:
    if isinstance(size, tuple) and mode in ("shortest", "longest"):
        raise UsageError(f"--resize {mode} takes one size, not {size[0]}x{size[1]}")
    box = size if isinstance(size, tuple) else (size, size)
    if min(box) < 1:
        raise UsageError(f"a size of {min(box)} pixels", todo="Sizes begin at 1.")
    return box


def _place(width: int, height: int, mode: ResizeMode, box: tuple[int, int], enlarge: bool) -> Placement:
    match mode:
        case "none":
            inner = width, height
        case "exact":
            if not enlarge and (box[0] > width or box[1] > height):
                raise SampleError(Reason.TOO_SMALL, f"{width} x {height} pixels for {box[0]} x {box[1]}")
            inner = box
        case "pad":
            # The side that needs the smaller scale decides.
            by_width = box[0] * height <= box[1] * width
            inner = _scaled(width, height, box[0] if by_width else box[1], by_width, enlarge)
            return Placement(width, height, *box, *inner, (box[0] - inner[0]) // 2, (box[1] - inner[1]) // 2)
        case "shortest":
            inner = _scaled(width, height, box[0], width <= height, enlarge)
        case "longest":
            inner = _scaled(width, height, box[0], width >= height, enlarge)
    return Placement(width, height, *inner, *inner)


def _scaled(width: int, height: int, target: int, by_width: bool, enlarge: bool) -> tuple[int, int]:
    """The size with one side brought to ``target``, or the same size if that would enlarge and must not."""
    leading, other = (width, height) if by_width else (height, width)
    if target >= leading and not enlarge:
        return width, height
    following = max(1, (2 * other * target + leading) // (2 * leading))
    return (target, following) if by_width else (following, target)


Box = tuple[float, float, float, float]
Pixels = NDArray[np.uint8] | NDArray[np.uint16]


def resize_image(
    pixels: Pixels,
    placement: Placement,
    resampler: Resampler,
    background: tuple[int, int, int],
    box: Box | None = None,
) -> Pixels:
    """Resizes with an antialiased kernel (support grows with the reduction) and lays the result on the canvas.

    Args:
        pixels: uint8 or uint16 [H, W, C], C is 1 or 3, of the placement's source size, or the whole picture in
            another size.
        background: 8-bit colour of the canvas around the picture; its BT.601 luma for one channel.
        box: left, top, right and bottom of the source in ``pixels``, if these have another size.

    Returns:
        [placement.height, placement.width, C] of the same dtype, C-contiguous; the same object if nothing changes.
    """
    if box is None:
        _check(pixels, placement)
        if placement.identity:
            return pixels
    channels = pixels.shape[2]
    inner_size = (placement.inner_width, placement.inner_height)
    inner = pixels
    if box is not None or inner_size != (placement.source_width, placement.source_height):
        if pixels.dtype == np.uint16:
            inner = _resized16(pixels, inner_size, resampler, box)
        else:
            picture = Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])
            resized = np.asarray(picture.resize(inner_size, KERNELS[resampler], box))
            inner = resized if channels == 3 else resized[:, :, None]
    if inner_size == (placement.width, placement.height):
        return inner
    scale = 257 if pixels.dtype == np.uint16 else 1
    red, green, blue = (level * scale for level in background)
    colour = (red, green, blue) if channels == 3 else (_grey((red, green, blue)),)
    canvas: Pixels = np.empty((placement.height, placement.width, channels), pixels.dtype)
    canvas[:] = colour
    canvas[inside(placement)] = inner
    return canvas


def _resized16(pixels: Pixels, size: tuple[int, int], resampler: Resampler, box: Box | None) -> Pixels:
    """Channel by channel in float32, whose 24 bits lose nothing of 16 that survives the rounding at the end."""
    inner = np.empty((size[1], size[0], pixels.shape[2]), np.uint16)
    for channel in range(pixels.shape[2]):
        plane = Image.fromarray(pixels[:, :, channel].astype(np.float32))
        values = np.asarray(plane.resize(size, KERNELS[resampler], box))
        inner[:, :, channel] = np.clip(np.rint(values), 0, 65535)
    return inner


def _grey(colour: tuple[int, int, int]) -> int:
    red, green, blue = colour
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16


def resize_mask(mask: NDArray[Scalar], placement: Placement, fill: int = 0) -> NDArray[Scalar]:
    """Brings labels to the same place, each pixel the label that lies under its centre.

    Args:
        mask: [H, W], any integer dtype, of the placement's source size.
        fill: label of the canvas around the picture.

    Returns:
        [placement.height, placement.width] of the same dtype; the same object if nothing changes.
    """
    _check(mask, placement)
    if placement.identity:
        return mask
    # Centre (i + 1/2) · source / inner, rounded down, in integers.
    rows = (2 * np.arange(placement.inner_height) + 1) * placement.source_height // (2 * placement.inner_height)
    columns = (2 * np.arange(placement.inner_width) + 1) * placement.source_width // (2 * placement.inner_width)
    inner = mask[rows[:, None], columns]
    if inner.shape == (placement.height, placement.width):
        return inner
    canvas = np.full((placement.height, placement.width), fill, mask.dtype)
    canvas[inside(placement)] = inner
    return canvas


def inside(placement: Placement) -> tuple[slice, slice]:
    """The rows and columns of the canvas that the resized picture covers."""
    return (
        slice(placement.top, placement.top + placement.inner_height),
        slice(placement.left, placement.left + placement.inner_width),
    )


def _check(pixels: NDArray[np.generic], placement: Placement) -> None:
    if pixels.shape[:2] != (placement.source_height, placement.source_width):
        raise ValueError(f"shape {pixels.shape} for a placement of {placement.source_height} rows")
