"""Resizing single images while training: fast, and without aliasing."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from shardforge.errors import UsageError

Image = npt.NDArray[Any]

LINEAR_SHRINK = 1.4
"""Up to this shrinkage pixels are sampled linearly as they are: on two photographs that is as near to Lanczos as the
antialiased linear kernel of Pillow and torchvision is, 3.1 and 3.4 levels RMS; at 1.7 these are 4.2 and 3.4."""
SMOOTH_SHRINK = 2.0
"""Up to this one they are smoothed before: an RMS difference of 0.5 … 1.6 levels from that kernel, where averaging
areas differs by 1.2 … 3.2, in 0.3 of the time of that."""


COMPUTED = tuple(np.dtype(kind) for kind in (np.uint8, np.uint16, np.int16, np.float32, np.float64))
"""Types that OpenCV calculates with."""


def resize(image: Image, height: int, width: int, out: Image | None = None) -> Image:
    """Resizes an image [H, W, C] of any strides: linearly, after smoothing where a side shrinks by more than
    :data:`LINEAR_SHRINK`; beyond :data:`SMOOTH_SHRINK` by averaging areas.

    Args:
        out: C-contiguous [height, width, C] of the same type; the result is written into it.

    Returns:
        ``out``, or an array that may be ``image`` itself.

    Raises:
        UsageError: the type is none of :data:`COMPUTED`.
    """
    if image.dtype not in COMPUTED:
        raise UsageError(
            f"an image of {image.dtype} cannot be resized",
            todo=f"Convert it before, by a transform of your own, to {', '.join(map(str, COMPUTED))}.",
        )
    if out is not None and image.flags.writeable and np.may_share_memory(image, out):
        image = image.copy()
    down, across = image.shape[0] / height, image.shape[1] / width
    if down > SMOOTH_SHRINK or across > SMOOTH_SHRINK:
        inner = min(height, image.shape[0]), min(width, image.shape[1])
        last = inner == (height, width)
        image = _resized(image, *inner, cv2.INTER_AREA, out if last else None)
        if last:
            return image
    elif down > LINEAR_SHRINK or across > LINEAR_SHRINK:
        image = _smoothed(image, down, across)
    if down != 1 or across != 1:
        return _resized(image, height, width, cv2.INTER_LINEAR, out)
    if out is None:
        return np.ascontiguousarray(image)
    np.copyto(out, image)
    return out


def _smoothed(image: Image, down: float, across: float) -> Image:
    """Averages neighbours so that, with the linear kernel behind, it is as wide as one stretched by the shrinkage.

    Variances of kernels add up: that of [a, 1 - 2a, a] is 2a, of the linear kernel 1/6, of one that is stretched by s
    s² / 6.
    """
    a, b = ((max(1.0, shrink) ** 2 - 1) / 12 for shrink in (across, down))
    rows, columns = np.array([[a, 1 - 2 * a, a], [b, 1 - 2 * b, b]], np.float32)
    smooth = cv2.sepFilter2D(image, -1, rows, columns, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(smooth, image.dtype).reshape(image.shape)


def _resized(image: Image, height: int, width: int, how: int, out: Image | None) -> Image:
    if out is None:
        # OpenCV drops a single channel's dimension.
        return np.asarray(cv2.resize(image, (width, height), interpolation=how), image.dtype).reshape(
            height, width, -1
        )
    cv2.resize(image, (width, height), dst=out, interpolation=how)
    return out
