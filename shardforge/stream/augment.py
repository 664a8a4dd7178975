"""Training-time transforms of single images: NumPy uint8 or uint16 [H, W, C] → the same type, C-contiguous.

Random ones draw from the ``generator`` that they are given and from nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError

Image = npt.NDArray[Any]
Size = int | tuple[int, int]

_TRIES = 10


class RandomResizedCrop:
    """A crop of random area and aspect ratio, resized: the augmentation of Szegedy et al. 2015 as torchvision has it.

    Args:
        size: of the result: (height, width), or one number for a square.
        scale: the crop's share of the area, drawn uniformly from this range.
        ratio: width / height of the crop, its logarithm drawn uniformly.
    """

    def __init__(
        self, size: Size, scale: tuple[float, float] = (0.08, 1.0), ratio: tuple[float, float] = (3 / 4, 4 / 3)
    ) -> None:
        self.size, self.scale, self.ratio = _square(size), scale, ratio
        if not 0 < scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            raise UsageError(f"RandomResizedCrop with scale={scale} and ratio={ratio}: ranges of positive numbers")

    def __call__(self, image: Image, *, generator: np.random.Generator) -> Image:
        top, left, height, width = self._box(image.shape[0], image.shape[1], generator)
        return resize(image[top : top + height, left : left + width], *self.size)

    def _box(self, height: int, width: int, generator: np.random.Generator) -> tuple[int, int, int, int]:
        low, high = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(_TRIES):
            area = height * width * (self.scale[0] + (self.scale[1] - self.scale[0]) * generator.random())
            ratio = math.exp(low + (high - low) * generator.random())
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                top, left = int(generator.random() * (height - h + 1)), int(generator.random() * (width - w + 1))
                return top, left, h, w
        w, h = width, height
        if width / height < self.ratio[0]:
            h = max(1, min(height, round(width / self.ratio[0])))
        elif width / height > self.ratio[1]:
            w = max(1, min(width, round(height * self.ratio[1])))
        return (height - h) // 2, (width - w) // 2, h, w


class RandomHorizontalFlip:
    """Mirrors left and right with probability ``p``."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p
        if not 0 <= p <= 1:
            raise UsageError(f"RandomHorizontalFlip with p={p}: a probability")

    def __call__(self, image: Image, *, generator: np.random.Generator) -> Image:
        if generator.random() >= self.p:
            return image
        # Much faster than copying a view with a negative stride; OpenCV drops a single channel's dimension.
        return np.asarray(cv2.flip(image, 1), image.dtype).reshape(image.shape)


class Resize:
    """Resizes, antialiased when shrinking.

    Args:
        size: (height, width), or the length of the shorter side, whose ratio to the longer one is kept.
    """

    def __init__(self, size: Size) -> None:
        self.size = size
        _square(size)

    def __call__(self, image: Image, *, generator: np.random.Generator | None = None) -> Image:
        if not isinstance(self.size, int):
            return resize(image, *self.size)
        height, width = image.shape[:2]
        if height <= width:
            return resize(image, self.size, max(1, round(width * self.size / height)))
        return resize(image, max(1, round(height * self.size / width)), self.size)


class CenterCrop:
    """The middle part; where the image is smaller, zeros around it.

    Args:
        size: (height, width), or one number for a square.
    """

    def __init__(self, size: Size) -> None:
        self.size = _square(size)

    def __call__(self, image: Image, *, generator: np.random.Generator | None = None) -> Image:
        height, width = self.size
        missing = max(0, height - image.shape[0]), max(0, width - image.shape[1])
        if any(missing):
            around = [(n // 2, n - n // 2) for n in missing]
            image = np.pad(image, [*around, (0, 0)])
        top, left = (image.shape[0] - height) // 2, (image.shape[1] - width) // 2
        return np.ascontiguousarray(image[top : top + height, left : left + width])


def resize(image: Image, height: int, width: int) -> Image:
    """Resizes an image [H, W, C]: by area where it shrinks (so that nothing aliases), linearly where it grows."""
    inner = min(height, image.shape[0]), min(width, image.shape[1])
    for (h, w), how in ((inner, cv2.INTER_AREA), ((height, width), cv2.INTER_LINEAR)):
        if image.shape[:2] != (h, w):
            image = np.asarray(cv2.resize(image, (w, h), interpolation=how), image.dtype).reshape(h, w, -1)
    return np.ascontiguousarray(image)


def _square(size: Size) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise UsageError(f"size={size}: at least one pixel each way")
    return height, width
