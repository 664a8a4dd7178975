"""Volumes: exact where nothing is resampled, antialiased where reduced, and mapped back to the patient."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pydicom
import pytest
from numpy.typing import NDArray

from shardforge.dicom.resample import resample_plane, triangle_taps
from shardforge.dicom.volume import VolumeGrid, fill_volume, plan_volume
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.resampling import KERNELS, weights

AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
CORONAL = (1.0, 0.0, 0.0, 0.0, 0.0, -1.0)


def _positions(
    count: int, step: tuple[float, float, float], start: tuple[float, float, float] = (-10, 20, 30)
) -> Any:
    return np.asarray(start) + np.arange(count)[:, None] * np.asarray(step)


def _noise(shape: tuple[int, int, int], dtype: type = np.int16) -> NDArray[Any]:
    return np.random.default_rng(3).integers(-1024, 3072, shape).astype(dtype)


def _resample_axis(values: NDArray[Any], axis: int, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.moveaxis(np.tensordot(matrix, np.moveaxis(values.astype(np.float64), axis, 0), 1), 0, axis)


def _linear_matrix(source: int, target: int) -> NDArray[np.float64]:
    """Linear interpolation at the new centres, written out; held at the ends."""
    out = np.zeros((target, source))
    for i in range(target):
        place = min(max((i + 0.5) * source / target - 0.5, 0.0), source - 1.0)
        low = min(int(place), source - 2)
        out[i, low] += 1 - (place - low)
        out[i, low + 1] += place - low
    return out


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
@pytest.mark.parametrize("target", [None, (3.0, 0.7, 0.5)])
def test_without_a_new_spacing_every_voxel_is_the_slices(dtype: type, target: Any) -> None:
    values = _noise((5, 6, 7), dtype) if dtype == np.int16 else _noise((5, 6, 7)).astype(np.float32) / 7
    grid = plan_volume(_positions(5, (0, 0, 3)), AXIAL, (6, 7), (0.7, 0.5), target)
    volume = fill_volume(grid, list(values))
    assert volume.dtype == dtype
    np.testing.assert_array_equal(volume, values)
    assert grid.spacing == (3.0, 0.7, 0.5)
    assert grid.origin == (-10, 20, 30)


@pytest.mark.parametrize(
    ("orientation", "step"),
    [(AXIAL, (0, 0, 2.5)), (CORONAL, (0, 2.5, 0)), ((0.6, 0.8, 0, 0, 0, -1), (-0.8 * 2.5, 0.6 * 2.5, 0))],
)
def test_the_affine_leads_from_indices_to_millimetres(orientation: Any, step: Any) -> None:
    """PS3.3 C.7.6.2.1.1: P = S + X·Δj·j + Y·Δi·i, and from slice to slice the difference of their positions."""
    positions = _positions(4, step)
    grid = plan_volume(positions, orientation, (8, 9), (0.7, 0.5))
    for z, y, x in ((0, 0, 0), (3, 7, 8), (2, 1, 5)):
        expected = (
            positions[z] + np.asarray(orientation[:3]) * 0.5 * x + np.asarray(orientation[3:]) * 0.7 * y
        )  # fmt: skip
        np.testing.assert_allclose(grid.affine @ [z, y, x, 1], expected, atol=1e-9)
    assert grid.spacing == pytest.approx((2.5, 0.7, 0.5))


def test_a_tilted_stack_keeps_its_shear() -> None:
    """Gantry tilt of 20 degrees: slices move 2 mm along their normal and shift by 2·tan 20° in y."""
    shift = 2 * math.tan(math.radians(20))
    positions = _positions(5, (0, shift, 2))
    grid = plan_volume(positions, AXIAL, (8, 8), (1, 1), (4, 1, 1))
    assert grid.shape == (3, 8, 8)
    assert grid.spacing == pytest.approx((2 * 5 / 3, 1, 1))
    # The middle of the block stays where it was: slice 2 of five, slice 1 of three.
    np.testing.assert_allclose(grid.affine @ [1, 0, 0, 1], positions[2], atol=1e-9)


@pytest.mark.parametrize(
    ("count", "spacing", "target", "size"),
    [(10, 1.0, 2.0, 5), (10, 1.0, 3.0, 3), (5, 1.0, 2.0, 3), (4, 1.0, 100.0, 1), (3, 2.5, 1.0, 8), (7, 0.9, 0.9, 7)],
)
def test_sizes_are_the_extent_over_the_wanted_spacing(count: int, spacing: float, target: float, size: int) -> None:
    """Rounded half up (5 mm at 2 mm: 2.5, so 3), at least 1; the extent is kept on every axis."""
    grid = plan_volume(_positions(count, (0, 0, spacing)), AXIAL, (count, count), (spacing,) * 2, (target,) * 3)
    assert grid.shape == (size,) * 3
    assert grid.spacing == pytest.approx((count * spacing / size,) * 3)
    for axis, direction in enumerate(((0, 0, 1), (0, 1, 0), (1, 0, 0))):
        before = np.dot((-10, 20, 30), direction) - spacing / 2
        first = np.eye(4)[3]
        last = first.copy()
        first[axis], last[axis] = -0.5, size - 0.5
        assert np.dot(grid.affine @ first, direction) == pytest.approx(before)
        assert np.dot(grid.affine @ last, direction) == pytest.approx(before + count * spacing)


@pytest.mark.parametrize(
    "target", [(2.0, 1.3, 2.1), (0.6, 0.4, 0.35), (5.0, 0.7, 4.0), (1.0, 9.0, 0.5), (99, 99, 99)]
)
def test_resampling_is_the_kernels_definition(target: tuple[float, float, float]) -> None:
    values = _noise((9, 20, 17))
    grid = plan_volume(_positions(9, (0, 0, 1)), AXIAL, (20, 17), (0.7, 0.5), target)
    depth, height, width = grid.shape
    expected = _resample_axis(values, 0, _linear_matrix(9, depth))
    expected = _resample_axis(expected, 1, weights(20, height, 0, 20, KERNELS["bilinear"]))
    expected = _resample_axis(expected, 2, weights(17, width, 0, 17, KERNELS["bilinear"]))
    as_float = fill_volume(grid, iter(values.astype(np.float32)))
    np.testing.assert_allclose(as_float, expected, atol=0.01)
    as_int = fill_volume(grid, iter(values))
    assert as_int.dtype == np.int16
    assert np.abs(as_int - expected).max() <= 0.51


def test_enlarging_in_plane_is_linear_interpolation_as_opencv_has_it() -> None:
    plane = _noise((1, 31, 23), np.float32)[0]
    ours = resample_plane(plane, triangle_taps(31, 77), triangle_taps(23, 50))
    np.testing.assert_allclose(ours, cv2.resize(plane, (50, 77), interpolation=cv2.INTER_LINEAR), atol=0.01)


def test_reducing_in_plane_leaves_no_moire() -> None:
    """Lines one pixel wide become their mean, where plain interpolation would pick lines or gaps."""
    plane = np.zeros((128, 128), np.float32)
    plane[:, ::2] = 1000
    reduced = resample_plane(plane, triangle_taps(128, 16), triangle_taps(128, 16))
    np.testing.assert_allclose(reduced[:, 1:-1], 500, atol=5)


@pytest.mark.parametrize(("source", "target"), [(1, 1), (1, 5), (2, 7), (512, 1), (512, 511), (7, 512), (1000, 3)])
def test_weights_add_up_and_stay_inside(source: int, target: int) -> None:
    plane = np.full((source, 3), 3071, np.int16)
    down = triangle_taps(source, target)
    assert (down is None) == (source == target)
    np.testing.assert_allclose(resample_plane(plane, down, None), np.full((target, 3), 3071), rtol=1e-6)


@pytest.mark.parametrize("value", [32767, -32768])
def test_extreme_values_do_not_wrap_around(value: int) -> None:
    """4729 float32 products add up to half a unit more than their exact sum."""
    grid = plan_volume(_positions(2, (0, 0, 1)), AXIAL, (4729, 1), (1, 1), (1, 4729, 1))
    volume = fill_volume(grid, [np.full((4729, 1), value, np.int16)] * 2)
    assert np.abs(volume.astype(int) - value).max() <= 1


@pytest.mark.parametrize(
    "positions",
    [
        _positions(1, (0, 0, 1)),
        _positions(0, (0, 0, 1)),
        _positions(5, (0, 0, -1)),
        _positions(5, (0, 0, 0)),
        _positions(5, (1, 0, 0)),
        _positions(6, (0, 0, 1))[[0, 1, 2, 4, 5]],
        _positions(5, (0, 0, 1))[[0, 2, 1, 3, 4]],
        np.vstack([_positions(5, (0, 0, 1)), [[-10, 20, 34.97]]]),
        np.vstack([_positions(2, (0, 0, 1)), [[-9, 20, 32]], [[-10, 20, 33]]]),
        np.full((3, 3), np.nan),
    ],
)
def test_slices_that_form_no_regular_grid_are_refused(positions: NDArray[np.float64]) -> None:
    with pytest.raises(SampleError) as caught:
        plan_volume(positions, AXIAL, (8, 8), (1, 1))
    assert caught.value.reason is Reason.BAD_GEOMETRY


@pytest.mark.parametrize("orientation", [(1, 0, 0, 1, 0, 0), (0,) * 6, (1, 0, 0, 0, 2, 0), (math.nan, 0, 0, 0, 1, 0)])
def test_axes_that_are_not_perpendicular_are_refused(orientation: Any) -> None:
    with pytest.raises(SampleError) as caught:
        plan_volume(_positions(5, (0, 0, 1)), orientation, (8, 8), (1, 1))
    assert caught.value.reason is Reason.BAD_GEOMETRY


@pytest.mark.parametrize(
    ("spacing", "target"), [((1e9, 1e9), (1, 1, 1)), ((1, 1), (1e-300, 1, 1)), ((1, 1), (1, 1e-3, 1e-3))]
)
def test_a_volume_too_large_is_refused_before_it_is_made(spacing: Any, target: Any) -> None:
    with pytest.raises(SampleError) as caught:
        plan_volume(_positions(5, (0, 0, 1)), AXIAL, (64, 64), spacing, target)
    assert caught.value.reason is Reason.OVER_BUDGET


def test_slices_of_another_size_or_number_are_refused() -> None:
    grid = plan_volume(_positions(3, (0, 0, 1)), AXIAL, (8, 9), (1, 1), (2, 2, 2))
    good = np.zeros((3, 8, 9), np.int16)
    for slices in ([*good, good[0]], list(good[:2]), [], [good[0], good[0].T, good[0]]):
        with pytest.raises(SampleError) as caught:
            fill_volume(grid, slices)
        assert caught.value.reason is Reason.BAD_GEOMETRY
    for slices in ([good[0], good[1].astype(np.float32), good[2]], list(good.astype(np.int32))):
        with pytest.raises(ValueError, match="slice"):
            fill_volume(grid, slices)


def test_slices_are_taken_one_by_one() -> None:
    """64 slices of 512 x 512 in float32 are 64 MiB; their reduced volume 1 MiB; a few planes 6 MiB."""

    def made() -> Iterator[NDArray[np.float32]]:
        for number in range(64):
            yield np.full((512, 512), number, np.float32)

    grid = plan_volume(_positions(64, (0, 0, 1)), AXIAL, (512, 512), (1, 1), (2, 4, 4))
    tracemalloc.start()
    volume = fill_volume(grid, made())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert volume.nbytes == 32 * 128 * 128 * 4
    assert peak < 12 * 2**20


def test_a_real_series_keeps_every_landmark_in_place(corpus: Path) -> None:
    """The position of a voxel of the resampled volume holds what linear interpolation finds there in the slices."""
    read = [pydicom.dcmread(path) for path in sorted((corpus / "dicom" / "series_ct").glob("*.dcm"))]
    orientation = [float(value) for value in read[0].ImageOrientationPatient]
    normal = np.cross(orientation[:3], orientation[3:])
    read.sort(key=lambda ds: float(np.dot(np.asarray(ds.ImagePositionPatient, float), normal)))
    positions = np.array([ds.ImagePositionPatient for ds in read], np.float64)
    values = np.stack([ds.pixel_array.astype(np.int16) for ds in read])
    spacing = (float(read[0].PixelSpacing[0]), float(read[0].PixelSpacing[1]))
    stored = plan_volume(positions, orientation, values.shape[1:], spacing)
    # Enlarged, in-plane interpolation is linear too.
    grid = plan_volume(positions, orientation, values.shape[1:], spacing, tuple(d / 1.5 for d in stored.spacing))  # type: ignore[arg-type]
    volume = fill_volume(grid, values)
    for place in ((3, 11, 20), (20, 17, 9), (10, 30, 30)):
        millimetres = grid.affine @ [*place, 1]
        index = np.linalg.solve(stored.affine[:, :3], millimetres - stored.affine[:, 3])
        low = np.floor(index).astype(int)
        part = index - low
        expected = sum(
            np.prod([part[axis] if corner[axis] else 1 - part[axis] for axis in range(3)])
            * values[tuple(low + np.array(corner))]
            for corner in np.ndindex(2, 2, 2)
        )
        assert abs(float(volume[place]) - float(expected)) <= 0.51


def test_a_grid_says_where_its_first_voxel_is() -> None:
    grid = VolumeGrid((2, 2, 2), (2, 2, 2), (1, 1, 1), np.hstack([np.eye(3), [[1.0], [2.0], [3.0]]]))
    assert grid.origin == (1, 2, 3)
