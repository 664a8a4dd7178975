"""Functional groups of enhanced multi-frame objects: where each frame lies (PS3.3 C.7.6.16)."""

from __future__ import annotations

from typing import cast

from shardforge.sources.dicom.header import Directions, FramePlace, Vector
from shardforge.sources.dicom.values import Values

SHARED, PER_FRAME = 0x52009229, 0x52009230
_POSITION, _ORIENTATION, _MEASURES = 0x00209113, 0x00209116, 0x00289110
_CONTENT, _DIFFUSION, _ECHO = 0x00209111, 0x00189117, 0x00189114


def frame_places(values: Values, frames: int) -> tuple[FramePlace, ...]:
    """One place per frame, from its own group or else the shared one; empty without functional groups.

    Args:
        frames: NumberOfFrames, within the limits; frames beyond the groups have the shared place.
    """
    per_frame = values.items(PER_FRAME)[:frames]
    shared = values.first(SHARED)
    if not per_frame and shared is None:
        return ()
    base = FramePlace() if shared is None else _place(shared, FramePlace())
    places = [_place(group, base) for group in per_frame]
    return tuple(places + [base] * (frames - len(places)))


def shared_number(values: Values, group: int, tag: int) -> float | None:
    """A number of a shared functional group, of the first frame's own group, else of the top level."""
    for above in (SHARED, PER_FRAME):
        found = values.first(above, group)
        number = None if found is None else found.number(tag)
        if number is not None:
            return number
    return values.number(tag)


def _place(group: Values, base: FramePlace) -> FramePlace:
    position = _vector(group, _POSITION, 0x00200032, 3)
    orientation = _vector(group, _ORIENTATION, 0x00200037, 6)
    spacing = _vector(group, _MEASURES, 0x00280030, 2)
    return FramePlace(
        position=base.position if position is None else cast(Vector, position),
        orientation=base.orientation if orientation is None else cast(Directions, orientation),
        temporal=_number(group, _CONTENT, 0x00209128, "UL", base.temporal),
        echo=_number(group, _ECHO, 0x00189082, "FD", base.echo),
        b_value=_number(group, _DIFFUSION, 0x00189087, "FD", base.b_value),
        acquisition=_number(group, _CONTENT, 0x00209156, "US", base.acquisition),
        spacing=base.spacing if spacing is None else cast(tuple[float, float], spacing),
    )


def _vector(group: Values, sequence: int, tag: int, length: int) -> tuple[float, ...] | None:
    item = group.first(sequence)
    return None if item is None else item.vector(tag, length)


def _number(group: Values, sequence: int, tag: int, code: str, base: float | None) -> float | None:
    item = group.first(sequence)
    found = None if item is None else item.number(tag, code)
    return base if found is None else found
