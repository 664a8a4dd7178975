"""Boxes and points go where the pixels go, and nothing else passes for one."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.errors import SampleError
from shardforge.geometry.annotations import (
    corners,
    from_corners,
    move_boxes,
    move_points,
    orient_points,
    plain_numbers,
    read_boxes,
    read_points,
)
from shardforge.geometry.orientation import apply_orientation
from shardforge.geometry.resize import Placement, place

FORMATS = ("xyxy", "xywh", "cxcywh")
UNITS = ("pixels", "relative")
sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000))
modes = st.sampled_from(
    [("shortest", 256), ("longest", 300), ("pad", (320, 200)), ("exact", (64, 48)), ("none", 1), ("pad", 1024)]
)


def placement(size: tuple[int, int], mode: Any) -> Placement:
    return place(*size, mode=mode[0], size=mode[1], enlarge=True, max_pixels=10**12)


@given(
    sizes, modes, st.sampled_from(FORMATS), st.lists(st.tuples(*[st.floats(0, 0.9)] * 2, *[st.floats(0.01, 1)] * 2))
)
@settings(max_examples=150, deadline=None)
def test_the_recorded_transform_brings_boxes_back(size: Any, mode: Any, form: Any, parts: Any) -> None:
    there = placement(size, mode)
    given_boxes = np.array(parts, np.float64).reshape(-1, 4) * [*size, *size]
    given_boxes[:, 2:] += given_boxes[:, :2]
    moved = corners(move_boxes(from_corners(given_boxes, form), there, format=form), form)
    # What the parquet keeps, as it keeps it.
    scale = np.array([there.scale_x, there.scale_y] * 2, np.float32).astype(np.float64)
    offset = np.array([there.offset_x, there.offset_y] * 2, np.float32)
    back = (moved - offset) / scale
    # Each number is within half a float32 step of the true one, and so is the scale.
    tolerance = (
        4 * np.finfo(np.float32).eps * (np.abs(given_boxes).max(initial=1) + 2 * max(offset.max(), 1) / scale.min())
    )
    np.testing.assert_allclose(back, given_boxes, rtol=0, atol=tolerance)


@given(sizes, modes, st.sampled_from(UNITS), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1))))
@settings(max_examples=100, deadline=None)
def test_points_of_either_unit_come_to_the_same_place(size: Any, mode: Any, units: Any, parts: Any) -> None:
    there = placement(size, mode)
    relative = np.array(parts, np.float64).reshape(-1, 2)
    given_points = relative if units == "relative" else relative * size
    moved = move_points(given_points, there, units=units)
    found = moved * [there.width, there.height] if units == "relative" else moved
    left_top = np.array([there.left, there.top])
    expected = relative * [there.inner_width, there.inner_height] + left_top
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-4)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_stored_pixel_and_the_box_around_it_turn_alike(orientation: int) -> None:
    height, width = 5, 7
    for row, column in ((0, 0), (1, 5), (4, 2)):
        stored = np.zeros((height, width), np.uint8)
        stored[row, column] = 1
        upright = apply_orientation(stored, orientation)
        y, x = (int(axis[0]) for axis in np.nonzero(upright))
        there = placement((upright.shape[1], upright.shape[0]), ("none", 1))
        box = np.array([[column, row, column + 1, row + 1]], np.float64)
        for form in FORMATS:
            moved = move_boxes(from_corners(box, form), there, format=form, orientation=orientation)
            np.testing.assert_array_equal(corners(moved, form), [[x, y, x + 1, y + 1]])
        middle = np.array([[column + 0.5, row + 0.5]])
        np.testing.assert_array_equal(move_points(middle, there, orientation=orientation), [[x + 0.5, y + 0.5]])
        share = middle / [width, height]
        np.testing.assert_allclose(
            move_points(share, there, units="relative", orientation=orientation) * [there.width, there.height],
            [[x + 0.5, y + 0.5]],
            rtol=1e-6,
        )


def test_orientations_by_arithmetic() -> None:
    # EXIF 2.32: the first row is the scene's top (1, 2), bottom (3, 4), left (5, 8) or right (6, 7) edge.
    found = [orient_points(np.array([[2.0, 1.0]]), 10, 4, turn)[0].tolist() for turn in range(1, 9)]
    assert found == [[2, 1], [8, 1], [8, 3], [2, 3], [1, 2], [3, 2], [3, 8], [1, 8]]


def test_padding_and_scaling_by_arithmetic() -> None:
    # 200 x 100 in 50 x 50: a quarter, 12 rows of canvas above.
    there = placement((200, 100), ("pad", 50))
    box = np.array([[20, 40, 60, 100]], np.float64)
    np.testing.assert_array_equal(move_boxes(box, there, format="xyxy"), [[5, 22, 15, 37]])
    np.testing.assert_array_equal(move_boxes(box, there, format="xywh"), [[5, 22, 15, 25]])
    np.testing.assert_array_equal(move_boxes(box, there, format="cxcywh"), [[5, 22, 15, 25]])
    share = move_boxes(np.array([[0.5, 0.5, 1, 1]]), there, format="cxcywh", units="relative")
    np.testing.assert_allclose(share, [[0.5, 24.5 / 50, 1, 0.5]], rtol=1e-7)


def test_a_box_that_reaches_beyond_the_image_is_not_clipped() -> None:
    there = placement((100, 100), ("exact", (50, 50)))
    moved = move_boxes(np.array([[-10, 20, 110, 200]], np.float64), there, format="xyxy")
    np.testing.assert_array_equal(moved, [[-5, 10, 55, 100]])


def test_what_coco_calls_not_labelled_stays_at_zero() -> None:
    there = placement((200, 100), ("pad", 50))
    points = np.array([[0, 0, 0], [0, 0, 2], [300, 0, 0], [200, 100, 1]], np.float64)
    np.testing.assert_array_equal(move_points(points, there), [[0, 0, 0], [0, 12, 2], [75, 12, 0], [50, 37, 1]])


@pytest.mark.parametrize(
    ("boxes", "form", "words"),
    [
        ([[10, 10, 10, 20]], "xyxy", "no area"),
        ([[0, 0, 5, 5], [10, 10, 20, 5]], "xyxy", "box 1 has no area"),
        ([[10, 10, 0, 5]], "xywh", "no area"),
        ([[10, 10, 5, -5]], "cxcywh", "no area"),
        ([[100, 0, 110, 10]], "xyxy", "outside the image of 100 x 80"),
        ([[0, -9, 10, 0]], "xyxy", "outside"),
        ([[0, 0, 1e-300, 1]], "xyxy", "no area left"),
        ([[1, 1, 1e39, 5]], "xyxy", "no area left"),
    ],
)
def test_boxes_that_are_none(boxes: Any, form: Any, words: str) -> None:
    with pytest.raises(SampleError, match=words) as caught:
        move_boxes(np.array(boxes, np.float64), placement((100, 80), ("none", 1)), format=form)
    assert caught.value.reason == "bad_annotation"


@pytest.mark.parametrize("point", [[100.1, 5], [5, -0.1], [5, 80.5]])
def test_points_outside_the_image(point: list[float]) -> None:
    with pytest.raises(SampleError, match="outside the image of 100 x 80"):
        move_points(np.array([point]), placement((100, 80), ("none", 1)))


@pytest.mark.parametrize("as_json", [False, True])
def test_cells_as_tables_have_them(as_json: bool) -> None:
    def cell(value: Any) -> Any:
        return json.dumps(value) if as_json else value

    assert read_boxes(cell([1, 2, 3, 4])).tolist() == [[1, 2, 3, 4]]
    assert read_boxes(cell([[1, 2, 3, 4], [5, 6, 7.5, 8]])).tolist() == [[1, 2, 3, 4], [5, 6, 7.5, 8]]
    assert read_boxes(cell([])).shape == (0, 4)
    assert read_points(cell([[1, 2], [3, 4]]), "xy").tolist() == [[1, 2], [3, 4]]
    assert read_points(cell([1, 2, 0, 3, 4, 2]), "xyv").tolist() == [[1, 2, 0], [3, 4, 2]]
    assert read_points(cell([[1, 2, 0]]), "xyv").tolist() == [[1, 2, 0]]
    assert read_points(cell([]), "xyv").shape == (0, 3)


@pytest.mark.parametrize(
    "cell",
    [
        "", "[1, 2, 3, 4", "none", "7", 7, 1.5, {"x": 1}, [1, 2, 3], [1, 2, 3, 4, 5, 6, 7, 8], [[1, 2, 3]],
        [[1, 2, 3, 4], 5], [1, [2, 3, 4, 5]], [1, 2, 3, None], [1, 2, 3, "4"], [1, 2, 3, True], "[1, 2, 3, NaN]",
        "[1, 2, 3, Infinity]", [1, 2, 3, float("nan")], [1, 2, 3, float("inf")], [1, 2, 3, 10**400], [[[1, 2, 3, 4]]],
        "[" * 100_000,
    ],
)  # fmt: skip
def test_cells_that_are_no_boxes(cell: Any) -> None:
    with pytest.raises(SampleError) as caught:
        read_boxes(cell)
    assert caught.value.reason == "bad_annotation"


@pytest.mark.parametrize("cell", [[1, 2], [[1, 2, 3]], [[1, 2, 0.5]], [1, 2, -1], [[1, 2]], [1, 2, 2, 3]])
def test_cells_that_are_no_coco_points(cell: Any) -> None:
    with pytest.raises(SampleError):
        read_points(cell, "xyv")


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_plain_numbers_are_the_same_float32_and_short(values: list[float]) -> None:
    found = plain_numbers(np.array([values]))[0]
    assert np.array(found, np.float32).tobytes() == np.array(values, np.float32).tobytes()
    assert plain_numbers(np.array([[np.float32(0.1)]])) == [[0.1]]


@given(st.lists(st.tuples(*[st.floats(-1e4, 1e4)] * 4), max_size=5))
def test_formats_lead_to_each_other(rows: list[Any]) -> None:
    boxes = np.array(rows, np.float64).reshape(-1, 4)
    for one, two in pairwise(FORMATS):
        np.testing.assert_allclose(from_corners(corners(boxes, one), two), from_corners(corners(boxes, one), two))  # type: ignore[arg-type]
        np.testing.assert_allclose(from_corners(corners(boxes, one), one), boxes, rtol=1e-9, atol=1e-9)  # type: ignore[arg-type]
