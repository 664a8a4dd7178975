"""From segmentation frames to the mask of an image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shardforge.dicom.plane import Plane
from shardforge.dicom.segmentation import (
    Segment,
    SegmentationIndex,
    SegmentFrame,
    SliceMask,
    frames_of,
    slice_mask,
)
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

PLANE = Plane("1.9", (0.0, 0.0, 10.0), (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), (1.0, 1.0))
SHAPE = (2, 3)


def index(*segments: int | None, **changed: Any) -> SegmentationIndex:
    """Frames of these segments, all of the image 1.1."""
    frames = tuple(SegmentFrame(number, segment, None) for number, segment in enumerate(segments))
    numbers = sorted({segment for segment in segments if segment is not None}) or [0, 1]
    whole = SegmentationIndex(
        kind="BINARY",
        shape=SHAPE,
        maximum=1,
        background=0,
        wide=False,
        segments=tuple(Segment(number, None, None) for number in numbers),
        frames=frames,
        by_image={("1.1", None): frames},
        covered=frozenset({"1.1"}),
        loose=0,
    )
    return replace(whole, **changed)


def mask(of: SegmentationIndex, stored: list[Any], uid: str = "1.1", **place: Any) -> SliceMask:
    found = slice_mask(of, np.array(stored, np.uint8), uid, SHAPE, **place)
    assert found is not None
    return found


def refused(of: SegmentationIndex, shape: tuple[int, int] = SHAPE, uid: str = "1.1", **place: Any) -> Reason:
    with pytest.raises(SampleError) as caught:
        slice_mask(of, np.zeros((len(of.frames), *SHAPE), np.uint8), uid, shape, **place)
    return caught.value.reason


def test_the_highest_segment_wins_and_the_overlap_is_counted() -> None:
    # In file order the higher number comes first; the number decides, not the order.
    found = mask(index(7, 2), [[[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 1]]])
    np.testing.assert_array_equal(found.values, [[7, 7, 2], [0, 0, 2]])
    assert (found.overlapping, found.found_by) == (1, "reference")


def test_two_frames_of_one_segment_do_not_overlap_each_other() -> None:
    found = mask(index(3, 3), [[[1, 1, 0], [0, 0, 0]], [[0, 1, 1], [0, 0, 0]]])
    np.testing.assert_array_equal(found.values, [[3, 3, 3], [0, 0, 0]])
    assert found.overlapping == 0


def test_half_of_the_maximum_belongs_to_a_fractional_segment() -> None:
    found = mask(index(1, kind="FRACTIONAL", maximum=255), [[[0, 127, 128], [255, 1, 129]]])
    np.testing.assert_array_equal(found.values, [[0, 0, 1], [1, 0, 1]])
    even = mask(index(1, kind="FRACTIONAL", maximum=128), [[[0, 63, 64], [128, 1, 65]]])
    np.testing.assert_array_equal(even.values, [[0, 0, 1], [1, 0, 1]])


def test_label_maps_are_taken_as_they_are() -> None:
    stored: NDArray[Any] = np.array([[[0, 300, 2], [1, 1, 65535]]], np.uint16)
    found = slice_mask(index(None, kind="LABELMAP", wide=True), stored, "1.1", SHAPE)
    assert found is not None
    assert found.values.dtype == np.uint16
    np.testing.assert_array_equal(found.values, stored[0])


def test_the_declared_background_fills_an_image_without_frames() -> None:
    found = mask(
        index(None, kind="LABELMAP", background=9, covered=frozenset({"1.1", "1.2"})), [[[0] * 3] * 2], "1.2"
    )
    np.testing.assert_array_equal(found.values, np.full(SHAPE, 9))


def test_label_values_above_255_make_16_bits() -> None:
    assert mask(index(300, wide=True), [[[1, 0, 0], [0, 0, 0]]]).values.tolist() == [[300, 0, 0], [0, 0, 0]]


def test_only_the_frames_of_the_image_are_asked_for() -> None:
    frames = index(1, 2).frames
    of = index(1, 2, by_image={("1.1", None): frames[:1], ("1.2", None): frames[1:]})
    stored = {1: np.ones(SHAPE, np.uint8)}
    found = slice_mask(of, stored, "1.2", SHAPE)
    assert found is not None
    np.testing.assert_array_equal(found.values, np.full(SHAPE, 2))


def test_frames_of_a_multi_frame_image_are_told_apart() -> None:
    frames = index(1, 1).frames
    of = index(1, 1, by_image={("1.1", 0): frames[:1], ("1.1", 4): frames[1:]})
    assert frames_of(of, "1.1", image_frame=4) == (frames[1:], "reference")
    assert frames_of(of, "1.1", image_frame=3) == ((), "nothing")


def test_an_image_that_was_looked_at_in_vain_is_all_background() -> None:
    found = mask(index(1, covered=frozenset({"1.1", "1.2"})), [[[1] * 3] * 2], "1.2")
    assert (found.values.sum(), found.found_by) == (0, "nothing")


def test_a_segmentation_of_other_images_gives_no_mask() -> None:
    assert slice_mask(index(1), np.zeros((1, *SHAPE)), "1.3", SHAPE) is None


def test_without_references_the_place_decides() -> None:
    there = SegmentFrame(0, 1, PLANE)
    behind = SegmentFrame(1, 2, replace(PLANE, position=(0.0, 0.0, 12.0)))
    of = index(1, 2, frames=(there, behind), by_image={}, loose=2)
    found = mask(of, [[[1, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]]], plane=PLANE)
    assert (found.values.tolist(), found.found_by) == ([[1, 0, 0], [0, 0, 0]], "plane")


def test_an_empty_mask_is_never_guessed() -> None:
    lies = SegmentFrame(0, 1, PLANE)
    of = index(1, frames=(lies,), by_image={}, loose=1)
    assert refused(of) is Reason.MASK_MISMATCH
    assert refused(of, plane=replace(PLANE, position=(0.0, 0.0, 10.4))) is Reason.MASK_MISMATCH


def test_another_size_is_refused() -> None:
    assert refused(index(1), (3, 2)) is Reason.MASK_MISMATCH


def test_a_frame_that_names_the_image_but_is_flipped_is_refused() -> None:
    flipped = replace(PLANE, position=(0.0, 1.0, 10.0), orientation=(1.0, 0.0, 0.0, 0.0, -1.0, 0.0))
    of = index(1, by_image={("1.1", None): (SegmentFrame(0, 1, flipped),)})
    assert refused(of, plane=PLANE) is Reason.MASK_MISMATCH


def test_a_frame_of_another_size_than_declared_is_corrupt() -> None:
    with pytest.raises(SampleError) as caught:
        slice_mask(index(1), np.zeros((1, 3, 3)), "1.1", SHAPE)
    assert caught.value.reason is Reason.CORRUPT
