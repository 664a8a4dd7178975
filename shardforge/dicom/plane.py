"""Where a picture lies in the patient: whether two pictures cover each other pixel by pixel (PS3.3 C.7.6.2.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SAME_PLACE_MM = 0.01
"""Far more than what rounding to a decimal string costs, far less than a pixel."""
_MOST_OFF_PIXELS = 0.5


@dataclass(frozen=True)
class Plane:
    """Where a picture lies.

    Attributes:
        frame_of_reference: FrameOfReferenceUID, that of the coordinates.
        position: ImagePositionPatient, mm: the centre of the first pixel.
        orientation: ImageOrientationPatient: the direction along a row, then that down a column.
        spacing: PixelSpacing, mm: between the centres of neighbouring rows, then of neighbouring columns.
    """

    frame_of_reference: str
    position: tuple[float, float, float]
    orientation: tuple[float, float, float, float, float, float]
    spacing: tuple[float, float]


def same_plane(one: Plane, other: Plane, shape: tuple[int, int]) -> bool:
    """Whether pictures of one shape [rows, columns] lie on each other exactly: every corner within 0.01 mm."""
    if one.frame_of_reference != other.frame_of_reference:
        return False
    return bool(np.all(np.abs(_corners(one, shape) - _corners(other, shape)) <= _SAME_PLACE_MM))


def pixels_apart(one: Plane, other: Plane, shape: tuple[int, int]) -> float | None:
    """How far apart the corners of pictures of one shape [rows, columns] are, in pixels, seen along the normal of
    ``one``; None if their coordinates cannot be compared."""
    if one.frame_of_reference != other.frame_of_reference:
        return None
    off = _corners(one, shape) - _corners(other, shape)
    row, column = np.array(one.orientation[:3]), np.array(one.orientation[3:])
    return float(max(np.abs(off @ row).max() / one.spacing[1], np.abs(off @ column).max() / one.spacing[0]))


def overlay(one: Plane, other: Plane, shape: tuple[int, int]) -> bool:
    """Whether no pixel of ``one`` is more than half a pixel off its partner in ``other``, as far as can be told."""
    off = pixels_apart(one, other, shape)
    return off is None or off <= _MOST_OFF_PIXELS


def _corners(plane: Plane, shape: tuple[int, int]) -> NDArray[np.float64]:
    """The centres of the first pixel, of the last in the first row and of the first in the last row, mm [3, 3]."""
    along = np.array(plane.orientation[:3]) * plane.spacing[1] * (shape[1] - 1)
    down = np.array(plane.orientation[3:]) * plane.spacing[0] * (shape[0] - 1)
    first = np.array(plane.position)
    return np.stack([first, first + along, first + down])
