"""Slices that are there twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def same_positions(distances: NDArray[np.float64], tolerance: float) -> list[list[int]]:
    """Indices of slices that stand at one position, position by position.

    Args:
        distances: float64 [N], mm along the normal, ascending.
        tolerance: the most that a position's slices may lie behind its first, in mm.
    """
    places: list[list[int]] = []
    start = -np.inf
    for index, distance in enumerate(distances):
        if distance - start > tolerance:
            places.append([])
            start = distance
        places[-1].append(index)
    return places


@dataclass(slots=True)
class Sorted:
    """The slices of some places.

    Attributes:
        kept: of each place, those that are slices of their own.
        duplicates: slice → the one that it is the same as, pixel by pixel.
        spares: slice → the kept one whose instance it claims to be, with other pixels.
    """

    kept: list[list[int]] = field(default_factory=list)
    duplicates: dict[int, int] = field(default_factory=dict)
    spares: dict[int, int] = field(default_factory=dict)


def sort_out(
    places: Sequence[Sequence[int]],
    instance: Callable[[int], tuple[str, Hashable]],
    digest: Callable[[int], bytes | None],
    *,
    one_position: bool,
) -> Sorted:
    """Tells duplicates, other copies of an instance, and slices of their own apart. Pixels decide: a copy with others
    may be the only one that is whole.

    Args:
        places: slices that may be the same, in the order of preference.
        instance: SOPInstanceUID ("" for unknown) and frame.
        digest: of the pixels, None if it cannot be told; only asked for slices that may be the same.
        one_position: the slices of a place stand at one position, so that those of different instances may be the
            same too.
    """
    found = Sorted()
    for place in places:
        names = [instance(index) for index in place]
        copies = Counter(name for name in names if name[0])
        instances: dict[tuple[str, Hashable], int] = {}
        pixels: dict[Hashable, int] = {}
        found.kept.append([])
        for index, name in zip(place, names, strict=True):
            suspect = copies[name] > 1 or (one_position and len(place) > 1)
            value = digest(index) if suspect else None
            same = index if value is None else pixels.setdefault(value if one_position else (name, value), index)
            if same != index:
                found.duplicates[index] = same
            elif copies[name] > 1 and instances.setdefault(name, index) != index:
                found.spares[index] = instances[name]
            else:
                found.kept[-1].append(index)
    return found
