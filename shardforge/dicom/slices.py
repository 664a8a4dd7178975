"""What is known of a slice's place in its series, and what is found of a whole group of slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Slice:
    """One frame, as far as its place in a series goes.

    Attributes:
        name: tells it from all others; orders slices that nothing else orders.
        series: SeriesInstanceUID, or what stands for it.
        sop: SOPInstanceUID, "" if unknown. ``frame``: number in its object.
        position: ImagePositionPatient, mm. ``orientation``: ImageOrientationPatient.
        spacing: between rows and between columns, mm.
        acquisition, echo, temporal, b_value: numbers that tell volumes of one series apart.
        spacing_between_slices: as the header says, mm; only used without positions.
        cut: its pixel data are not all there; of two copies the other one is kept.
    """

    name: str
    series: str
    sop: str = ""
    frame: int = 0
    position: tuple[float, float, float] | None = None
    orientation: tuple[float, float, float, float, float, float] | None = None
    rows: int = 0
    columns: int = 0
    spacing: tuple[float, float] | None = None
    image_type: tuple[str, ...] = ()
    instance: int | None = None
    acquisition: float | None = None
    echo: float | None = None
    temporal: float | None = None
    b_value: float | None = None
    spacing_between_slices: float | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SeriesFinding:
    """What a group of slices is like.

    Attributes:
        series: SeriesInstanceUID; ``part``: number of this group among those of its series, the largest first.
        n_slices: without duplicates and other copies.
        spacing_mm: distance of neighbouring slices: the median of positions, or SpacingBetweenSlices.
        spacing_from: ``positions``, ``spacing_between_slices`` or None.
        regular: evenly spaced along a straight line (see :class:`SliceGrid`); never without positions, but for a
            single slice.
        tilted, tilt_deg: the way from the first to the last slice is not the normal.
        missing: slices that a regular grid lacks.
        shift_mm: the farthest that a slice has moved in its plane.
        duplicates: slices left out because an earlier one is the same.
        same_uid: further slices that share SOP instance UID and place with one of these, but not the pixels: samples
            of their own, but no slices of a volume.
        same_position: other groups of the series have slices of this kind at the same positions, with other pixels,
            and no number tells them apart.
        localizer: a survey picture.
        mixed_orientation: the series holds slices of other orientations.
        sorted_by: ``position``, ``instance_number``, or ``name`` (nothing else orders them).
        normal: the direction of ascending slices, of length 1, in patient coordinates.
    """

    series: str
    part: int
    n_slices: int
    rows: int
    columns: int
    spacing_mm: float | None
    spacing_from: Literal["positions", "spacing_between_slices"] | None
    regular: bool
    tilted: bool
    tilt_deg: float
    missing: int
    shift_mm: float
    duplicates: int
    same_uid: int
    same_position: bool
    localizer: bool
    mixed_orientation: bool
    sorted_by: Literal["position", "instance_number", "name"]
    normal: tuple[float, float, float] | None

    @property
    def words(self) -> tuple[str, ...]:
        """What is remarkable, in fixed words, sorted."""
        found = {
            "duplicates": self.duplicates > 0,
            "gaps": self.missing > 0,
            "irregular": not self.regular and not self.missing,
            "localizer": self.localizer,
            "mixed_orientation": self.mixed_orientation,
            "no_positions": self.sorted_by != "position",
            "same_position": self.same_position,
            "same_uid": self.same_uid > 0,
            "tilted": self.tilted,
        }
        return tuple(word for word, holds in found.items() if holds)


@dataclass(frozen=True, slots=True)
class SliceGroup:
    """One stack of slices.

    Attributes:
        order: indices of its slices, sorted.
        distances: mm along the normal, one per slice in that order, or None without positions.
        duplicates: index of a slice that is left out → index of the one that is the same, in ``order`` or ``spares``.
        spares: index of a slice → index of the one in ``order`` that has its place and its SOP instance UID, but
            other pixels.
    """

    finding: SeriesFinding
    order: tuple[int, ...]
    distances: tuple[float, ...] | None
    duplicates: dict[int, int]
    spares: dict[int, int]
