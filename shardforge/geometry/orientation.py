"""Turning pictures upright."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def oriented_size(width: int, height: int, orientation: int) -> tuple[int, int]:
    """Width and height after :func:`apply_orientation`; orientations 5 to 8 exchange them."""
    return (height, width) if orientation >= 5 else (width, height)


def apply_orientation(pixels: NDArray[Scalar], orientation: int) -> NDArray[Scalar]:
    """Turns stored pixels upright (EXIF 2.32, tag 0x0112).

    The tag says which edges of the scene the first row and the first column are: 1 top/left, 2 top/right,
    3 bottom/right, 4 bottom/left, 5 left/top, 6 right/top, 7 right/bottom, 8 left/bottom.

    Args:
        pixels: [H, W] or [H, W, C].
        orientation: 1..8.

    Returns:
        A C-contiguous array; the same object for orientation 1 if it is contiguous already.

    Raises:
        ValueError: another orientation.
    """
    turned: NDArray[Any]
    match orientation:
        case 1:
            turned = pixels
        case 2:
            turned = pixels[:, ::-1]
        case 3:
            turned = pixels[::-1, ::-1]
        case 4:
            turned = pixels[::-1]
        case 5:
            turned = pixels.swapaxes(0, 1)
        case 6:
            turned = pixels[::-1].swapaxes(0, 1)
        case 7:
            turned = pixels[::-1, ::-1].swapaxes(0, 1)
        case 8:
            turned = pixels[:, ::-1].swapaxes(0, 1)
        case _:
            raise ValueError(f"orientation {orientation}")
    return np.ascontiguousarray(turned)
