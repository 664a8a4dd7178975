"""Slices of a series → groups that are one stack each, sorted by position, with what is wrong with them.

Names of files and InstanceNumber say nothing reliable about order; positions do (PS3.3 C.7.6.2.1.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.duplicate_slices import Sorted, same_positions, sort_out
from shardforge.dicom.slice_grid import SAME_POSITION_MM, SliceGrid, measure_grid, slice_normal
from shardforge.dicom.slices import SeriesFinding, Slice, SliceGroup

__all__ = ["SeriesFinding", "Slice", "SliceGroup", "group_slices"]

DIRECTION_TOLERANCE = 1e-3
"""Direction cosines (and pixel spacings, in mm) that differ by less are the same."""
_SURVEY_SLICES = 3
_SURVEY_RATIO = 4
_VARIANTS = ("b_value", "echo", "temporal", "acquisition")


@dataclass(slots=True)
class _Stack:
    """Slices that may be one volume, not yet sorted."""

    members: list[int]
    normal: NDArray[np.float64] | None
    direction: int
    same_position: bool = False
    duplicates: dict[int, int] = field(default_factory=dict)
    spares: dict[int, int] = field(default_factory=dict)


def group_slices(slices: Sequence[Slice], digest: Callable[[int], bytes | None]) -> list[SliceGroup]:
    """Groups and sorts slices; the order they are given in plays no part.

    One group has one series, orientation, matrix, pixel spacing and ImageType. Acquisition, echo and temporal number
    and b-value separate slices whose ranges of positions overlap, unless all of them together form one regular grid:
    scanners also count acquisitions along one stack. Slices that still share a position are duplicates (equal
    digests), of which the first by instance number and name stays (a whole one, if there is one), or other copies of
    one SOP instance, of which one has the place, or they belong to different volumes.

    Args:
        digest: of the pixels of the slice at an index, None if it cannot be told; only asked for slices that share
            a position, or a SOP instance where there are no positions.

    Returns:
        groups by series, the largest of each first.
    """
    by_series: dict[str, list[int]] = defaultdict(list)
    for index in sorted(range(len(slices)), key=lambda i: _canonical(slices[i])):
        by_series[slices[index].series].append(index)
    return [group for members in by_series.values() for group in _series_groups(slices, members, digest)]


def _canonical(one: Slice) -> tuple[str, float, str, int, str]:
    return (one.series, _number(one.instance), one.sop, one.frame, one.name)


def _number(value: float | None) -> float:
    return np.inf if value is None else value


def _series_groups(
    slices: Sequence[Slice], members: list[int], digest: Callable[[int], bytes | None]
) -> Iterator[SliceGroup]:
    stacks = [
        volume
        for base in _base_stacks(slices, members)
        for variant in _split_variants(slices, base, _VARIANTS)
        for volume in _volumes(slices, variant, digest)
    ]
    stacks.sort(key=lambda stack: -len(stack.members))
    largest: dict[int, int] = {}
    for stack in (stack for stack in stacks if stack.normal is not None):
        largest[stack.direction] = max(largest.get(stack.direction, 0), len(stack.members))
    for part, stack in enumerate(stacks):
        others = max((count for direction, count in largest.items() if direction != stack.direction), default=0)
        yield _finish(slices, stack, part, mixed=len(largest) > 1 and stack.normal is not None, others=others)


def _base_stacks(slices: Sequence[Slice], members: Iterable[int]) -> list[_Stack]:
    """By orientation, pixel spacing, matrix and ImageType."""
    directions = _Directions()
    stacks: dict[tuple[object, ...], _Stack] = {}
    for index in members:
        one = slices[index]
        direction, alike = directions.place(one)
        key = (direction, alike, one.rows, one.columns, one.image_type, one.position is None)
        stack = stacks.get(key)
        if stack is None:
            normal = None if one.position is None else directions.normals[direction]
            stack = stacks[key] = _Stack([], normal, direction)
        stack.members.append(index)
    return list(stacks.values())


class _Directions:
    """Orientations and spacings met so far; what lies within the tolerance of an earlier one counts as that."""

    def __init__(self) -> None:
        self.normals: list[NDArray[np.float64] | None] = []
        self._orientations = _Nearby(6)
        self._spacings = _Nearby(2)

    def place(self, one: Slice) -> tuple[int, int]:
        """Numbers of the orientation and of the spacing."""
        direction = self._orientations.number(one.orientation)
        if direction == len(self.normals):
            known = one.orientation
            self.normals.append(None if known is None else slice_normal(np.array(known, np.float64)))
        return direction, self._spacings.number(one.spacing)


class _Nearby:
    def __init__(self, width: int) -> None:
        self._points = np.empty((16, width))
        self._count = 0
        self._numbers: dict[tuple[float, ...] | None, int] = {}
        self._next = 0

    def number(self, values: tuple[float, ...] | None) -> int:
        if values not in self._numbers:
            self._numbers[values] = self._new(values)
        return self._numbers[values]

    def _new(self, values: tuple[float, ...] | None) -> int:
        point = np.full(self._points.shape[1], np.inf if values is None else 0.0)
        if values is not None:
            point[:] = values
            near = (np.abs(self._points[: self._count] - point) <= DIRECTION_TOLERANCE).all(axis=1)
            if near.any():
                return int(near.argmax())
        if self._count == len(self._points):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
        self._points[self._count] = point
        self._count += 1
        return self._count - 1


def _split_variants(slices: Sequence[Slice], stack: _Stack, names: Sequence[str]) -> list[_Stack]:
    """By the numbers that tell volumes apart, where positions alone do not."""
    if stack.normal is None or len(stack.members) < 2 or not names:
        return [stack]
    parts: dict[object, list[int]] = defaultdict(list)
    for index in stack.members:
        parts[getattr(slices[index], names[0])].append(index)
    # A number of its own for every slice counts slices, not volumes.
    if 1 < len(parts) < len(stack.members) and _tells_volumes_apart(
        slices, stack.members, stack.normal, parts.values()
    ):
        split = [_Stack(part, stack.normal, stack.direction) for part in parts.values()]
    else:
        split = [stack]
    return [final for part in split for final in _split_variants(slices, part, names[1:])]


def _tells_volumes_apart(
    slices: Sequence[Slice], members: Sequence[int], normal: NDArray[np.float64], parts: Iterable[list[int]]
) -> bool:
    ranges = sorted((float(d.min()), float(d.max())) for d in (_distances(slices, part, normal) for part in parts))
    reach = -np.inf
    for low, high in ranges:
        if low <= reach + SAME_POSITION_MM:
            break
        reach = high
    else:
        return False
    distances = _distances(slices, members, normal)
    if (np.diff(np.sort(distances)) <= SAME_POSITION_MM).any():
        return True
    return not measure_grid(_positions(slices, members)[np.argsort(distances)], normal).regular


def _positions(slices: Sequence[Slice], members: Sequence[int]) -> NDArray[np.float64]:
    return np.array([slices[index].position for index in members], np.float64)


def _distances(slices: Sequence[Slice], members: Sequence[int], normal: NDArray[np.float64]) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = _positions(slices, members) @ normal
    return distances


def _grid(slices: Sequence[Slice], members: Sequence[int], normal: NDArray[np.float64] | None) -> SliceGrid:
    if normal is None:
        return SliceGrid(even=len(members) < 2)
    return measure_grid(_positions(slices, members), normal)


def _volumes(slices: Sequence[Slice], stack: _Stack, digest: Callable[[int], bytes | None]) -> list[_Stack]:
    """Without duplicates, and cut into as many volumes as slices share a position."""
    if stack.normal is None:
        copies = sorted(stack.members, key=lambda i: slices[i].cut)
        found = _sorted_out(slices, [copies], digest, one_position=False)
        left_out = found.duplicates.keys() | found.spares.keys()
        members = [index for index in stack.members if index not in left_out]
        return [_Stack(members, None, stack.direction, False, found.duplicates, found.spares)]
    distances = _distances(slices, stack.members, stack.normal)
    order = np.argsort(distances, kind="stable")
    members = [stack.members[i] for i in order]
    places = same_positions(distances[order], SAME_POSITION_MM)
    shared = [
        sorted((members[i] for i in place), key=lambda i: (slices[i].cut, _canonical(slices[i]))) for place in places
    ]
    found = _sorted_out(slices, shared, digest, one_position=True)
    depth = max(map(len, found.kept))
    volumes = [_Stack([], stack.normal, stack.direction, depth > 1) for _ in range(depth)]
    home: dict[int, _Stack] = {}
    for place in found.kept:
        for volume, index in zip(volumes, place, strict=False):
            volume.members.append(index)
            home[index] = volume
    for index, original in found.spares.items():
        home[index] = home[original]
        home[original].spares[index] = original
    for index, original in found.duplicates.items():
        home[original].duplicates[index] = original
    return volumes


def _sorted_out(
    slices: Sequence[Slice],
    places: Sequence[Sequence[int]],
    digest: Callable[[int], bytes | None],
    *,
    one_position: bool,
) -> Sorted:
    return sort_out(places, lambda i: (slices[i].sop, slices[i].frame), digest, one_position=one_position)


def _finish(slices: Sequence[Slice], stack: _Stack, part: int, mixed: bool, others: int) -> SliceGroup:
    first = slices[stack.members[0]]
    grid = _grid(slices, stack.members, stack.normal)
    between = [slices[i].spacing_between_slices for i in stack.members]
    stated = between[0] if len(set(between)) == 1 else None
    spacing = grid.spacing if grid.spacing is not None else stated
    few = (
        len(stack.members) <= _SURVEY_SLICES
        and others >= _SURVEY_RATIO * len(stack.members)
        and stack.normal is not None
    )
    numbers = {(slices[i].instance, slices[i].frame) for i in stack.members if slices[i].instance is not None}
    finding = SeriesFinding(
        series=first.series,
        part=part,
        n_slices=len(stack.members),
        rows=first.rows,
        columns=first.columns,
        spacing_mm=spacing,
        spacing_from="positions" if grid.spacing is not None else ("spacing_between_slices" if spacing else None),
        regular=grid.regular,
        tilted=grid.tilted,
        tilt_deg=grid.tilt_deg,
        missing=grid.missing,
        shift_mm=grid.shift_mm,
        duplicates=len(stack.duplicates),
        same_uid=len(stack.spares),
        same_position=stack.same_position,
        localizer="LOCALIZER" in first.image_type or few,
        mixed_orientation=mixed,
        sorted_by="position"
        if stack.normal is not None
        else ("instance_number" if len(numbers) == len(stack.members) else "name"),
        normal=None if stack.normal is None else (*map(float, stack.normal),),  # type: ignore[arg-type]
    )
    distances = None if stack.normal is None else tuple(map(float, _distances(slices, stack.members, stack.normal)))
    return SliceGroup(finding, tuple(stack.members), distances, stack.duplicates, stack.spares)
