"""Training-time transforms of single images: NumPy [H, W, C] (uint8, uint16, int16 or float32) → the same type.

A reader runs them fused: what a transform draws comes from numbers that were computed for the whole batch, a JPEG is
decoded at the scale that the crop needs, and the result is written straight into the batch.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError
from shardforge.stream.resizing import COMPUTED, Image, resize

Numbers = npt.NDArray[np.float64]
Size = int | tuple[int, int]
Shape = tuple[int, int]

_TRIES = 10
_NOTHING: Numbers = np.empty(0)


class Transform:
    """What the built-in transforms have in common.

    Attributes:
        draws: how many random numbers one image takes.
    """

    draws = 0

    def __call__(self, image: Image, *, generator: np.random.Generator | None = None) -> Image:
        """Transforms one image [H, W, C]. Random transforms need a generator, and draw from nothing else."""
        if not self.draws:
            return self.apply(image, _NOTHING)
        if generator is None:
            raise UsageError(f"{type(self).__name__} draws at random", todo="Call it with generator=.")
        return self.apply(image, generator.random(self.draws))

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        """Transforms one image.

        Args:
            numbers: float64 [draws], each in [0, 1).
            full: height and width of the picture if ``image`` shows all of it at a reduced scale.
            out: an array that may take the result if it has its shape; ``image`` may be that array.
        """
        raise NotImplementedError

    def size(self, before: Shape | None) -> Shape | None:
        """Height and width of the result of a picture of some size; None if that is unknown."""
        return before

    def spare(self, height: int, width: int, numbers: Numbers) -> float:
        """How many times the picture may be reduced before the result would have to be enlarged; at least 1."""
        return 1.0


class RandomResizedCrop(Transform):
    """A crop of random area and aspect ratio, resized: the augmentation of Szegedy et al. 2015 as torchvision has it.

    Args:
        size: of the result: (height, width), or one number for a square.
        scale: the crop's share of the area, drawn uniformly from this range.
        ratio: width / height of the crop, its logarithm drawn uniformly.
    """

    draws = 4 * _TRIES

    def __init__(
        self, size: Size, scale: tuple[float, float] = (0.08, 1.0), ratio: tuple[float, float] = (3 / 4, 4 / 3)
    ) -> None:
        self._size, self.scale, self.ratio = _square(size), scale, ratio
        if not 0 < scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            raise UsageError(f"RandomResizedCrop with scale={scale} and ratio={ratio}: ranges of positive numbers")
        self._logarithms = math.log(ratio[0]), math.log(ratio[1])

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        height, width = image.shape[:2]
        whole = full or (height, width)
        top, left, h, w = self.box(whole[0], whole[1], numbers)
        if full is not None and full != (height, width):
            down, right = height / full[0], width / full[1]
            h, w = max(1, round(h * down)), max(1, round(w * right))
            top, left = min(round(top * down), height - h), min(round(left * right), width - w)
        target = out if out is not None and out.shape[:2] == self._size else None
        return resize(image[top : top + h, left : left + w], *self._size, target)

    def size(self, before: Shape | None) -> Shape:
        return self._size

    def spare(self, height: int, width: int, numbers: Numbers) -> float:
        if min(height / self._size[0], width / self._size[1]) < 2:
            # No crop is larger than the picture, and decoders reduce by 2 at least: the crop need not be known.
            return 1.0
        _, _, h, w = self.box(height, width, numbers)
        return max(1.0, min(h / self._size[0], w / self._size[1]))

    def box(self, height: int, width: int, numbers: Numbers) -> tuple[int, int, int, int]:
        """The crop from a picture: top, left, height, width."""
        least, most = self.scale
        low, high = self._logarithms
        for first in range(0, self.draws, 4):
            share, skew, down, right = numbers[first : first + 4].tolist()
            area = height * width * (least + (most - least) * share)
            ratio = math.exp(low + (high - low) * skew)
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                return int(down * (height - h + 1)), int(right * (width - w + 1)), h, w
        w, h = width, height
        if width / height < self.ratio[0]:
            h = max(1, min(height, round(width / self.ratio[0])))
        elif width / height > self.ratio[1]:
            w = max(1, min(width, round(height * self.ratio[1])))
        return (height - h) // 2, (width - w) // 2, h, w


class RandomHorizontalFlip(Transform):
    """Mirrors left and right with probability ``p``."""

    draws = 1

    def __init__(self, p: float = 0.5) -> None:
        self.p = p
        if not 0 <= p <= 1:
            raise UsageError(f"RandomHorizontalFlip with p={p}: a probability")

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        if numbers[0] >= self.p:
            return image
        if image.dtype not in COMPUTED:
            return np.ascontiguousarray(image[:, ::-1])
        # Much faster than copying a view with a negative stride.
        if image is out:
            cv2.flip(image, 1, dst=image)
            return image
        return np.asarray(cv2.flip(image, 1), image.dtype).reshape(image.shape)


class Resize(Transform):
    """Resizes, antialiased when shrinking.

    Args:
        size: (height, width), or the length of the shorter side, whose ratio to the longer one is kept.
    """

    def __init__(self, size: Size) -> None:
        self._size = size
        _square(size)

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        whole = full or image.shape[:2]
        height, width = self._target(whole[0], whole[1])
        target = out if out is not None and out.shape[:2] == (height, width) else None
        return resize(image, height, width, target)

    def size(self, before: Shape | None) -> Shape | None:
        if not isinstance(self._size, int):
            return self._size
        return None if before is None else self._target(*before)

    def spare(self, height: int, width: int, numbers: Numbers) -> float:
        h, w = self._target(height, width)
        return max(1.0, min(height / h, width / w))

    def _target(self, height: int, width: int) -> Shape:
        if not isinstance(self._size, int):
            return self._size
        if height <= width:
            return self._size, max(1, round(width * self._size / height))
        return max(1, round(height * self._size / width)), self._size


class CenterCrop(Transform):
    """The middle part; where the image is smaller, zeros around it.

    Args:
        size: (height, width), or one number for a square.
    """

    def __init__(self, size: Size) -> None:
        self._size = _square(size)

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        height, width = self._size
        if image.shape[0] < height or image.shape[1] < width:
            image = _surrounded(image, max(height, image.shape[0]), max(width, image.shape[1]), 0)
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        middle = image[top : top + height, left : left + width]
        if out is None or out.shape[:2] != self._size or np.may_share_memory(out, middle):
            return np.ascontiguousarray(middle)
        np.copyto(out, middle)
        return out

    def size(self, before: Shape | None) -> Shape:
        return self._size


class Pad(Transform):
    """The whole image in the middle of a larger canvas.

    Args:
        size: of the canvas: (height, width), or one number for a square.
        fill: the canvas's value, one number or one per channel.

    Raises:
        UsageError: an image is larger than the canvas.
    """

    def __init__(self, size: Size, fill: float | tuple[float, ...] = 0) -> None:
        self._size, self.fill = _square(size), fill

    def apply(self, image: Image, numbers: Numbers, full: Shape | None = None, out: Image | None = None) -> Image:
        height, width = self._size
        if image.shape[0] > height or image.shape[1] > width:
            raise UsageError(
                f"Pad({self._size}) of an image of {image.shape[0]} × {image.shape[1]}",
                todo="Resize or crop it before.",
            )
        return image if image.shape[:2] == self._size else _surrounded(image, height, width, self.fill)

    def size(self, before: Shape | None) -> Shape:
        return self._size


def _surrounded(image: Image, height: int, width: int, fill: Any) -> Image:
    canvas = np.empty((height, width, image.shape[2]), image.dtype)
    canvas[:] = fill
    top, left = (height - image.shape[0]) // 2, (width - image.shape[1]) // 2
    canvas[top : top + image.shape[0], left : left + image.shape[1]] = image
    return canvas


def _square(size: Size) -> Shape:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise UsageError(f"size={size}: at least one pixel each way")
    return height, width
