"""How parallel slices lie in space: along their normal, how far apart, how regular, tilted or shifted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAME_POSITION_MM = 1e-3
"""Slices nearer than this along the normal stand at one position."""
REGULAR = 1e-2
"""Allowed deviation of a slice distance from the median, as a part of it (highdicom's tolerance), and of the
direction of travel from the normal, as a tangent (0.57 degrees)."""
SHIFT_MM = 0.1
"""Farther than this from the straight line through the stack, a slice has moved within its plane."""


@dataclass(frozen=True)
class SliceGrid:
    """The geometry of a stack of slices.

    Attributes:
        spacing: mm between neighbouring slices along the normal (the median); None for fewer than two positions.
        missing: slices that a regular grid of this spacing lacks; 0 where the distances are no whole multiples of it.
        even: every distance is the median, within :data:`REGULAR`.
        tilt_deg: angle between the normal and the way from the first slice to the last, 0 to 90 (gantry tilt; tag
            0018,1120 and its sign play no part).
        shift_mm: the largest distance of a slice from the straight line between the first and the last, in its plane.
    """

    spacing: float | None = None
    missing: int = 0
    even: bool = True
    tilt_deg: float = 0.0
    shift_mm: float = 0.0

    @property
    def tilted(self) -> bool:
        """Whether the slices form a sheared block."""
        return math.tan(math.radians(min(self.tilt_deg, 89.9))) > REGULAR

    @property
    def regular(self) -> bool:
        """Whether the slices are evenly spaced along a straight line; a tilted stack may be regular."""
        return self.even and self.shift_mm <= SHIFT_MM


def slice_normal(orientation: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """``row × column`` of ImageOrientationPatient (PS3.3 C.7.6.2.1.1), of length 1; None if that is no direction.

    Args:
        orientation: float64 [6], the direction cosines of the first row and the first column.
    """
    normal = np.cross(orientation[:3], orientation[3:])
    length = float(np.linalg.norm(normal))
    return normal / length if math.isfinite(length) and length > 0.5 else None


def measure_grid(positions: NDArray[np.float64], normal: NDArray[np.float64]) -> SliceGrid:
    """The geometry of slices that are sorted along the normal and stand at different positions.

    Args:
        positions: float64 [N, 3], ImagePositionPatient in mm.
        normal: float64 [3], of length 1.
    """
    if len(positions) < 2:
        return SliceGrid()
    distances = positions @ normal
    steps = np.diff(distances)
    spacing = float(np.median(steps))
    even = bool((np.abs(steps - spacing) <= REGULAR * spacing).all())
    travel = distances - distances[0]
    in_plane = positions - positions[0] - np.outer(travel, normal)
    line = np.outer(travel / travel[-1], in_plane[-1])
    return SliceGrid(
        spacing=spacing,
        missing=0 if even else _missing(steps / spacing),
        even=even,
        tilt_deg=math.degrees(math.atan2(float(np.linalg.norm(in_plane[-1])), float(travel[-1]))),
        shift_mm=float(np.linalg.norm(in_plane - line, axis=1).max()),
    )


def _missing(multiples: NDArray[np.float64]) -> int:
    """Holes in a regular grid; 0 unless every step is a whole multiple of the spacing."""
    whole = np.rint(multiples)
    on_grid = (whole >= 1) & (np.abs(multiples - whole) <= REGULAR * whole)
    return int((whole - 1).sum()) if bool(on_grid.all()) else 0
