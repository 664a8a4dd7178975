"""Which slices stand beside a slice, for samples whose channels are neighbours."""

from __future__ import annotations


def stack_indices(index: int, count: int, neighbours: int) -> tuple[int, ...]:
    """The places of a slice and of its neighbours on both sides in a series sorted by position.

    At the ends of the series the outermost slice is repeated, so that every slice has a stack of the same size.

    Args:
        index: of the middle slice, from 0.
        count: slices in the series.
        neighbours: on each side; the stack has ``2 · neighbours + 1`` channels.

    Raises:
        ValueError: no such slice, or a negative number of neighbours.
    """
    if not 0 <= index < count or neighbours < 0:
        raise ValueError(f"slice {index} of {count} with {neighbours} neighbours")
    return tuple(min(max(place, 0), count - 1) for place in range(index - neighbours, index + neighbours + 1))
