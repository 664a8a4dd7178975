"""Resizing single images while training: fast, and without aliasing."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[Any]

LINEAR_SHRINK = 1.4
"""Up to this shrinkage sampling linearly is as good as averaging areas, in a fifth of the time: against Lanczos an
RMS error of 3.5 … 3.7 levels each for 1.05 … 1.4 on two photographs; at 1.7 it is 4.7 against 3.1."""


def resize(image: Image, height: int, width: int, out: Image | None = None) -> Image:
    """Resizes an image [H, W, C] of any strides: linearly, but by area along sides that shrink more than
    :data:`LINEAR_SHRINK` allows.

    Args:
        out: C-contiguous [height, width, C] of the same type; the result is written into it.

    Returns:
        ``out``, or an array that may be ``image`` itself.
    """
    if out is not None and np.may_share_memory(image, out):
        image = image.copy()
    if image.shape[0] > LINEAR_SHRINK * height or image.shape[1] > LINEAR_SHRINK * width:
        inner = min(height, image.shape[0]), min(width, image.shape[1])
        last = inner == (height, width)
        image = _resized(image, *inner, cv2.INTER_AREA, out if last else None)
        if last:
            return image
    if image.shape[:2] != (height, width):
        return _resized(image, height, width, cv2.INTER_LINEAR, out)
    if out is None:
        return np.ascontiguousarray(image)
    np.copyto(out, image)
    return out


def _resized(image: Image, height: int, width: int, how: int, out: Image | None) -> Image:
    if out is None:
        # OpenCV drops a single channel's dimension.
        return np.asarray(cv2.resize(image, (width, height), interpolation=how), image.dtype).reshape(
            height, width, -1
        )
    cv2.resize(image, (width, height), dst=out, interpolation=how)
    return out
