"""When two pictures cover each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardforge.dicom.plane import Plane, overlay, pixels_apart, same_plane

AXIAL = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
ONE = Plane("1.2.3", (-100.0, -90.0, 5.0), AXIAL, (0.8, 0.5))
SHAPE = (512, 256)


def test_a_picture_covers_itself() -> None:
    assert same_plane(ONE, ONE, SHAPE)
    assert pixels_apart(ONE, ONE, SHAPE) == 0


def test_rounding_to_decimal_strings_is_no_difference() -> None:
    rounded = replace(ONE, position=(-100.0000004, -90.0, 5.0000004), spacing=(0.8000004, 0.5000004))
    assert same_plane(ONE, rounded, SHAPE)


@pytest.mark.parametrize(
    "other",
    [
        replace(ONE, position=(-100.0, -90.0, 5.1)),
        replace(ONE, position=(-99.5, -90.0, 5.0)),
        replace(ONE, spacing=(0.8, 0.501)),  # 0.001 mm a pixel is 0.255 mm at the end of a row
        replace(ONE, orientation=(1.0, 0.0, 0.0, 0.0, -1.0, 0.0)),
        replace(ONE, frame_of_reference="1.2.4"),
    ],
    ids=["slice", "column", "spacing", "flip", "frame-of-reference"],
)
def test_a_picture_elsewhere_is_not_the_same(other: Plane) -> None:
    assert not same_plane(ONE, other, SHAPE)


def test_distance_counts_in_pixels_of_each_direction() -> None:
    # A quarter of a millimetre along rows is half of a 0.5 mm column step; down columns 0.8 mm make one row.
    assert pixels_apart(ONE, replace(ONE, position=(-99.75, -90.0, 5.0)), SHAPE) == pytest.approx(0.5)
    assert pixels_apart(ONE, replace(ONE, position=(-100.0, -89.2, 5.0)), SHAPE) == pytest.approx(1.0)


def test_a_flipped_picture_does_not_overlay() -> None:
    flipped = replace(ONE, position=(-100.0, -90.0 + 0.8 * 511, 5.0), orientation=(1.0, 0.0, 0.0, 0.0, -1.0, 0.0))
    assert pixels_apart(ONE, flipped, SHAPE) == pytest.approx(511)
    assert not overlay(ONE, flipped, SHAPE)


def test_what_lies_behind_another_overlays_it() -> None:
    assert overlay(ONE, replace(ONE, position=(-100.0, -90.0, 7.5)), SHAPE)


def test_coordinates_of_two_frames_of_reference_are_not_compared() -> None:
    assert pixels_apart(ONE, replace(ONE, frame_of_reference="9"), SHAPE) is None
