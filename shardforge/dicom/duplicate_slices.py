"""Slices that are there twice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

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


def drop_duplicates(
    places: Sequence[Sequence[int]],
    instance: Callable[[int], tuple[str, Hashable]],
    digest: Callable[[int], bytes | None] | None,
) -> tuple[list[list[int]], dict[int, int]]:
    """The slices of each place that differ, and the others with the one that each is the same as.

    Args:
        places: slices that stand at one position, in the order of preference.
        instance: SOPInstanceUID ("" for unknown) and frame: the same means the same slice, whatever the pixels.
        digest: of the pixels, None if it cannot be told; None if only instances count.
    """
    kept: list[list[int]] = []
    dropped: dict[int, int] = {}
    for place in places:
        instances: dict[tuple[str, Hashable], int] = {}
        pixels: dict[bytes, int] = {}
        kept.append([])
        for index in place:
            name = instance(index)
            original = instances.get(name) if name[0] else None
            value = digest(index) if original is None and digest is not None and len(place) > 1 else None
            if original is None and value is not None:
                original = pixels.setdefault(value, index)
            if original is None or original == index:
                kept[-1].append(index)
                instances.setdefault(name, index)
            else:
                dropped[index] = original
    return kept, dropped
