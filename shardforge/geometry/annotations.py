"""Boxes and keypoints: reading them, and bringing them to where the pixels went.

Coordinates follow :class:`~shardforge.geometry.resize.Placement`: pixel edges are integers, so that the left edge of
an image of width w is 0 and its right edge w. Nothing is clipped: resizing and padding lose no pixel of the image, so
a box that reaches beyond it (as some of COCO's do by rounding, and those of amodal data on purpose) still tells how
large the object is. Who needs clipped boxes clips them after the last crop, as torchvision does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shardforge.errors import SampleError
from shardforge.geometry.resize import Placement
from shardforge.shards.catalogue import Reason

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
PointFormat = Literal["xy", "xyv"]
Units = Literal["pixels", "relative"]
Floats = NDArray[np.float64]


def read_boxes(cell: Any) -> Floats:
    """A table's cell as boxes, float64 [n, 4]: one flat box of four numbers, or a list of them; JSON text of either.

    Raises:
        SampleError: ``bad_annotation`` for anything else, and for numbers that are not finite.
    """
    rows = _rows(_parsed(cell), 4, most_flat=1)
    for number, row in enumerate(rows):
        if len(row) != 4:
            raise _bad(f"box {number} has {len(row)} numbers, not 4")
    return np.array(rows, np.float64).reshape(-1, 4)


def read_points(cell: Any, format: PointFormat) -> Floats:
    """A table's cell as points, float64 [n, 2] or, for ``xyv``, [n, 3]: a list of points, or all numbers in one list.

    Raises:
        SampleError: ``bad_annotation`` for anything else, for numbers that are not finite, and for visibilities other
            than COCO's 0 (not labelled), 1 (labelled, hidden) and 2 (visible).
    """
    width = len(format)
    rows = _rows(_parsed(cell), width)
    for number, row in enumerate(rows):
        if len(row) != width:
            raise _bad(f"point {number} has {len(row)} numbers, not {width}")
        if width == 3 and row[2] not in (0.0, 1.0, 2.0):
            raise _bad(f"point {number} has the visibility {row[2]:g}, not 0, 1 or 2")
    return np.array(rows, np.float64).reshape(-1, width)


def _parsed(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        raise _bad(f"{cell[:40]!r} is no JSON") from None


def _rows(cell: Any, width: int, most_flat: int | None = None) -> list[list[float]]:
    if not isinstance(cell, list | tuple):
        raise _bad(f"{type(cell).__name__} where a list belongs")
    if any(isinstance(entry, list | tuple) for entry in cell):
        return [_numbers(entry) for entry in cell]
    flat = _numbers(cell)
    if len(flat) % width or (most_flat is not None and len(flat) > most_flat * width):
        raise _bad(f"{len(flat)} numbers in one list where {width} belong together")
    return [flat[start : start + width] for start in range(0, len(flat), width)]


def _numbers(entry: Any) -> list[float]:
    if not isinstance(entry, list | tuple):
        raise _bad(f"{type(entry).__name__} among lists")
    try:
        values = [math.nan if isinstance(value, bool | str) else float(value) for value in entry]
    except (TypeError, ValueError, OverflowError):
        raise _bad(f"{str(entry)[:40]} holds something that is no number") from None
    if not all(map(math.isfinite, values)):
        raise _bad(f"{str(entry)[:40]} holds something that is no finite number")
    return values


def corners(boxes: Floats, format: BoxFormat) -> Floats:
    """Boxes [n, 4] of a format as left, top, right, bottom."""
    if format == "xyxy":
        return boxes
    start, size = boxes[:, :2], boxes[:, 2:]
    start = start if format == "xywh" else start - size / 2
    return np.concatenate([start, start + size], axis=1)


def from_corners(boxes: Floats, format: BoxFormat) -> Floats:
    """The inverse of :func:`corners`."""
    if format == "xyxy":
        return boxes
    start, end = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([start if format == "xywh" else (start + end) / 2, end - start], axis=1)


def check_areas(boxes: Floats, format: BoxFormat) -> None:
    """Lets boxes [n, 4] pass that have an area, in whatever units.

    Raises:
        SampleError: ``bad_annotation``, naming the first that has none.
    """
    for number, (left, top, right, bottom) in enumerate(corners(boxes, format)):
        if not (left < right and top < bottom):
            raise _bad(f"box {number} has no area ({_told(boxes[number])} as {format})")


def orient_points(points: Floats, width: int, height: int, orientation: int) -> Floats:
    """Brings points [n, 2] of the stored picture to the upright one (EXIF 2.32, tag 0x0112), as
    :func:`~shardforge.geometry.orientation.apply_orientation` brings its pixels.

    Args:
        width, height: of the stored picture.
    """
    x, y = points[:, 0], points[:, 1]
    right, down = width - x, height - y
    turned = {
        1: (x, y),
        2: (right, y),
        3: (right, down),
        4: (x, down),
        5: (y, x),
        6: (down, x),
        7: (down, right),
        8: (y, right),
    }
    return np.stack(turned[orientation], axis=1)


def move_boxes(
    boxes: Floats, placement: Placement, *, format: BoxFormat, units: Units = "pixels", orientation: int = 1
) -> Floats:
    """Brings boxes of the source to the canvas, in the same format and units.

    Args:
        boxes: [n, 4].
        orientation: what made the stored picture upright, if the boxes refer to the stored one; else 1.

    Returns:
        float64 [n, 4]; each number is one of float32.

    Raises:
        SampleError: ``bad_annotation`` for a box without area, or wholly outside the image.
    """
    check_areas(boxes, format)
    edges = corners(boxes, format)
    ends = [
        _upright(edges[:, :2], placement, units, orientation),
        _upright(edges[:, 2:], placement, units, orientation),
    ]
    low, high = np.minimum(*ends), np.maximum(*ends)
    size = placement.whole
    outside = ((high <= 0) | (low >= size)).any(axis=1)
    if outside.any():
        number = int(np.argmax(outside))
        raise _bad(f"box {number} lies outside the image of {size[0]} x {size[1]} ({_told(boxes[number])})")
    moved = [_on_canvas(points, placement, units) for points in (low, high)]
    found = _as_float32(from_corners(np.concatenate(moved, axis=1), format))
    edges = corners(found, format)
    flat = ~((edges[:, 2:] > edges[:, :2]).all(axis=1) & np.isfinite(found).all(axis=1))
    if flat.any():
        number = int(np.argmax(flat))
        raise _bad(f"box {number} has no area left in float32 ({_told(boxes[number])})")
    return found


def move_points(points: Floats, placement: Placement, *, units: Units = "pixels", orientation: int = 1) -> Floats:
    """Brings points of the source to the canvas, in the same format and units.

    A point with visibility 0 may lie anywhere; at (0, 0), where COCO puts points that are not labelled, it stays.

    Args:
        points: [n, 2], or [n, 3] with visibilities.
        orientation: as for :func:`move_boxes`.

    Returns:
        float64 of the same shape; each number is one of float32.

    Raises:
        SampleError: ``bad_annotation`` for a point outside the image; its edges are inside.
    """
    labelled = points[:, 2] > 0 if points.shape[1] == 3 else np.ones(len(points), bool)
    places = _upright(points[:, :2], placement, units, orientation)
    size = placement.whole
    outside = labelled & ((places < 0) | (places > size)).any(axis=1)
    if outside.any():
        number = int(np.argmax(outside))
        raise _bad(f"point {number} lies outside the image of {size[0]} x {size[1]} ({_told(points[number])})")
    moved = points.copy()
    moved[:, :2] = _on_canvas(places, placement, units)
    nowhere = ~labelled & (points[:, :2] == 0).all(axis=1)
    moved[nowhere, :2] = 0
    found = _as_float32(moved)
    if not np.isfinite(found).all():
        raise _bad("a point lies beyond the range of float32")
    return found


def _upright(points: Floats, placement: Placement, units: Units, orientation: int) -> Floats:
    """Points [n, 2] as given → pixels of the upright source."""
    width, height = placement.whole
    stored = (height, width) if orientation >= 5 else (width, height)
    pixels = points * np.array(stored, np.float64) if units == "relative" else points
    return orient_points(pixels, *stored, orientation)


def _on_canvas(points: Floats, placement: Placement, units: Units) -> Floats:
    scale = np.array([placement.scale_x, placement.scale_y])
    moved = points * scale + np.array([placement.offset_x, placement.offset_y])
    if units == "relative":
        moved = moved / np.array([placement.width, placement.height], np.float64)
    return np.asarray(moved, np.float64)


def _as_float32(values: Floats) -> Floats:
    # What overflows becomes infinite here, and is refused by the caller.
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def plain_numbers(values: Floats) -> list[list[float]]:
    """Numbers of float32 as Python's, each with the fewest digits that read back as the same float32."""
    return [[float(str(np.float32(value))) for value in row] for row in values]


def _told(row: Sequence[float] | Floats) -> str:
    return "[" + ", ".join(f"{value:g}" for value in row) + "]"


def _bad(detail: str) -> SampleError:
    return SampleError(Reason.BAD_ANNOTATION, detail)
