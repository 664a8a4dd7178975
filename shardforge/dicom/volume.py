"""From slices to one volume, optionally resampled, with the affine that leads back to the patient.

Axes are [Z, Y, X]: z increases along the normal n = row × column (PS3.3 C.7.6.2.1.1), y down the columns, x along the
rows, as in the slices. The affine maps array indices (z, y, x) to millimetres in DICOM's patient coordinates (LPS).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.resample import resample_plane, triangle_taps
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

Values = NDArray[np.int16] | NDArray[np.float32]
Spacing = tuple[float, float, float]

_REGULAR = 1e-2
_SHIFT_MM = 0.1
_ORTHOGONAL = 1e-3
_ITEM_BYTES = 4


@dataclass(frozen=True)
class VolumeGrid:
    """Where the voxels of a volume are.

    Attributes:
        source_shape: slices, rows and columns as stored.
        shape: of the volume, [Z, Y, X].
        spacing: mm between neighbouring voxels along z (along the normal, also of a tilted stack), y and x.
        affine: float64 [3, 4]: LPS position in mm of the centre of voxel (z, y, x) is
            ``affine[:, :3] @ (z, y, x) + affine[:, 3]``. Of a tilted stack its first column is not perpendicular to
            the others.
    """

    source_shape: tuple[int, int, int]
    shape: tuple[int, int, int]
    spacing: Spacing
    affine: NDArray[np.float64]

    @property
    def origin(self) -> tuple[float, float, float]:
        """LPS position in mm of the centre of voxel (0, 0, 0)."""
        x, y, z = self.affine[:, 3].tolist()
        return x, y, z


def plan_volume(
    positions: NDArray[np.float64],
    orientation: Sequence[float],
    shape: tuple[int, int],
    spacing: tuple[float, float],
    target: Spacing | None = None,
    max_bytes: int = 2**31,
) -> VolumeGrid:
    """The grid of a volume, before a pixel is decoded.

    The physical extent stays: an axis of n voxels s mm apart becomes ``max(1, floor(n·s/t + 1/2))`` voxels, and the
    distance between them is the extent over that number, which is ``target`` up to rounding.

    Args:
        positions: float64 [N, 3], ImagePositionPatient in mm, sorted along the normal.
        orientation: ImageOrientationPatient, six direction cosines.
        shape: rows and columns of a slice.
        spacing: mm between rows and between columns.
        target: wanted spacing in mm along z, y and x; None leaves the voxels as they are.
        max_bytes: the largest volume, four bytes a voxel.

    Raises:
        SampleError: ``bad_geometry`` for under two slices, slices that are not sorted or not evenly spaced (within
            1 % of the median) along a line (within 0.1 mm, or 0.1 of a slice distance above 1 mm), or axes that are
            not perpendicular; ``over_budget`` for too large a volume.
    """
    count, (rows, columns) = len(positions), shape
    row, column = np.asarray(orientation[:3], np.float64), np.asarray(orientation[3:], np.float64)
    normal = np.cross(row, column)
    normal /= max(float(np.linalg.norm(normal)), _ORTHOGONAL)
    if not _perpendicular(row, column) or min(spacing) <= 0 or not np.isfinite(spacing).all():
        raise SampleError(Reason.BAD_GEOMETRY, f"orientation {list(orientation)}, spacing {spacing}")
    step = _step(np.asarray(positions, np.float64), normal)
    source_shape = (count, rows, columns)
    found = (float(step @ normal), *(float(distance) for distance in spacing))
    size = source_shape if target is None else _resized(source_shape, found, target)
    if float(np.prod(np.asarray(size, np.float64))) * _ITEM_BYTES > max_bytes:
        raise SampleError(Reason.OVER_BUDGET, f"a volume of {size} voxels, {max_bytes} bytes allowed")
    vectors = np.stack([step, column * spacing[0], row * spacing[1]], axis=1)
    ratio = np.asarray(source_shape, np.float64) / np.asarray(size, np.float64)
    # The edges stay: half a new voxel from the edge of the first one, which is half an old voxel before its centre.
    origin = np.asarray(positions[0], np.float64) + vectors @ ((ratio - 1) / 2)
    z, y, x = (float(distance) for distance in np.asarray(found) * ratio)
    return VolumeGrid(source_shape, size, (z, y, x), np.column_stack([vectors * ratio, origin]))


def _perpendicular(row: NDArray[np.float64], column: NDArray[np.float64]) -> bool:
    """Both of length 1 and at a right angle, as far as decimal strings of six digits tell."""
    lengths = np.array([row @ row, column @ column, row @ column])
    return bool(np.abs(lengths - [1, 1, 0]).max() <= _ORTHOGONAL)


def _step(positions: NDArray[np.float64], normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The way from a slice to the next, of a stack whose slices all lie where it leads."""
    if len(positions) < 2 or not np.isfinite(positions).all():
        raise SampleError(Reason.BAD_GEOMETRY, f"{len(positions)} slices with positions are no volume")
    step: NDArray[np.float64] = (positions[-1] - positions[0]) / (len(positions) - 1)
    distances = np.diff(positions @ normal)
    median = float(np.median(distances))
    line = positions[0] + np.arange(len(positions))[:, None] * step
    strayed = float(np.linalg.norm(line - positions, axis=1).max())
    # Deviations of 1 % each may add up; the affine is that of a straight line and must hold in the middle as well.
    if (
        median <= 0
        or float(np.abs(distances - median).max()) > _REGULAR * median
        or strayed > max(_SHIFT_MM, _SHIFT_MM * median)
    ):
        raise SampleError(Reason.BAD_GEOMETRY, "the slices are not sorted and evenly spaced along a line")
    return step


def _resized(shape: tuple[int, int, int], spacing: Sequence[float], target: Spacing) -> tuple[int, int, int]:
    if min(target) <= 0 or not np.isfinite(target).all():
        raise ValueError(f"a spacing of {target} mm")
    z, y, x = (
        max(1, int(np.floor(min(count * distance / wanted, 2.0**40) + 0.5)))
        for count, distance, wanted in zip(shape, spacing, target, strict=True)
    )
    return z, y, x


def fill_volume(grid: VolumeGrid, slices: Iterable[Values]) -> Values:
    """The voxels of a planned volume.

    In plane a triangle kernel whose support grows with the reduction (antialiased), along z linear between the two
    nearest slices; beyond the outermost centres their values go on. An axis that keeps its size is not touched.
    Slices are taken one by one: beside the volume itself only a few planes in float32 are held.

    Args:
        slices: one [H, W] array per slice in the order of the planned positions, all int16 or all float32.

    Returns:
        [Z, Y, X] of the slices' dtype; int16 rounded half to even.

    Raises:
        SampleError: ``bad_geometry`` where a slice has another size than planned, or there are more or fewer.
        ValueError: another dtype, or a mixture.
    """
    depth, height, width = grid.shape
    count, rows, columns = grid.source_shape
    down, across = triangle_taps(rows, height), triangle_taps(columns, width)
    along = np.clip((np.arange(depth) + 0.5) * count / depth - 0.5, 0, count - 1)
    lower = np.minimum(along.astype(np.int64), count - 2)
    volume: Values | None = None
    before: NDArray[np.float32] | None = None
    taken = 0
    for number, plane in enumerate(slices):
        if number == count or plane.shape != (rows, columns):
            raise SampleError(Reason.BAD_GEOMETRY, f"slice {number} of {count} has the shape {plane.shape}")
        if volume is None:
            volume = _empty(plane, grid.shape)
        if plane.dtype != volume.dtype:
            raise ValueError(f"a slice of {plane.dtype} among slices of {volume.dtype}")
        resampled = resample_plane(plane, down, across)
        if depth == count:
            _store(volume, number, resampled)
        elif before is not None:
            for z in np.flatnonzero(lower == number - 1).tolist():
                part = np.float32(along[z] - (number - 1))
                _store(volume, z, before * (1 - part) + resampled * part)
        before, taken = resampled, number + 1
    if volume is None or taken != count:
        raise SampleError(Reason.BAD_GEOMETRY, f"{taken} slices of {count}")
    return volume


def _empty(plane: Values, shape: tuple[int, int, int]) -> Values:
    if plane.dtype == np.int16:
        return np.empty(shape, np.int16)
    if plane.dtype == np.float32:
        return np.empty(shape, np.float32)
    raise ValueError(f"slices of {plane.dtype}")


def _store(volume: Values, z: int, plane: NDArray[np.float32]) -> None:
    if volume.dtype == np.int16:
        # Weights that add up to 1 only nearly may lead past the ends by a part of a unit.
        volume[z] = np.clip(np.rint(plane), -32768, 32767)
    else:
        volume[z] = plane
