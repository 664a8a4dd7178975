"""From a segmentation object to the mask of one image (PS3.3 A.51, A.101, C.8.20)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.plane import Plane, overlay, same_plane
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

Mask = NDArray[np.uint8] | NDArray[np.uint16]


@dataclass(frozen=True)
class Code:
    """A coded concept without its meaning, which is text: coding scheme designator and code value (PS3.3 8)."""

    scheme: str
    value: str


@dataclass(frozen=True)
class Segment:
    """What a label value stands for.

    Attributes:
        number: SegmentNumber, the value in the mask.
        category, type: of the segmented property; None unless it is a well-formed code of a public scheme.
    """

    number: int
    category: Code | None
    type: Code | None


@dataclass(frozen=True)
class SegmentFrame:
    """A frame of a segmentation object.

    Attributes:
        frame: its number, from 0.
        segment: the segment it shows; None for LABELMAP, whose pixels tell.
        plane: where it lies, or None.
    """

    frame: int
    segment: int | None
    plane: Plane | None


@dataclass(frozen=True)
class SegmentationIndex:
    """Which frames of a segmentation object belong to which image.

    Attributes:
        kind: SegmentationType.
        shape: rows and columns.
        maximum: MaximumFractionalValue, the stored value that means 1; 1 unless FRACTIONAL.
        background: the label value where nothing is.
        wide: label values need 16 bits.
        segments: by number.
        frames: all of them, in file order.
        by_image: SOP instance UID and frame (from 0, or None for every frame) of an image → the frames that were made
            from this image alone, pixel by pixel.
        covered: SOP instance UIDs of the images the segmentation was made from; one without frames holds nothing of
            what was looked for.
        loose: frames that are in ``by_image`` under no image; only where they lie tells what they show.
    """

    kind: Literal["BINARY", "FRACTIONAL", "LABELMAP"]
    shape: tuple[int, int]
    maximum: int
    background: int
    wide: bool
    segments: tuple[Segment, ...]
    frames: tuple[SegmentFrame, ...]
    by_image: Mapping[tuple[str, int | None], tuple[SegmentFrame, ...]]
    covered: frozenset[str]
    loose: int


@dataclass(frozen=True)
class SliceMask:
    """The mask of an image.

    Attributes:
        values: segment numbers, uint8 or uint16 [rows, columns].
        overlapping: pixels that several segments claim; they have the highest number of these.
        found_by: ``reference`` (frames name the image), ``plane`` (frames lie exactly on it) or ``nothing`` (the
            image was looked at and no frame was made, so the mask is all background).
    """

    values: Mask
    overlapping: int
    found_by: Literal["reference", "plane", "nothing"]


def frames_of(
    index: SegmentationIndex, sop_uid: str, *, image_frame: int = 0, plane: Plane | None = None
) -> tuple[tuple[SegmentFrame, ...], Literal["reference", "plane", "nothing"] | None]:
    """The frames that show an image's segments, by ascending segment number, and how they were found.

    Frames that name the image count; where none does, those that lie exactly on it.

    Args:
        image_frame: of a multi-frame image, from 0.
        plane: where the image lies, if it is known.

    Returns:
        No frames and None where the segmentation has nothing to do with the image.

    Raises:
        SampleError: ``mask_mismatch`` if it was made from the image, but no frame is known to show it, while some
            frames may. An empty mask would be a guess.
    """
    named = index.by_image.get((sop_uid, None), ()) + index.by_image.get((sop_uid, image_frame), ())
    if named:
        return _by_number(named), "reference"
    if plane is not None:
        there = [
            frame for frame in index.frames if frame.plane is not None and same_plane(frame.plane, plane, index.shape)
        ]
        if there:
            return _by_number(there), "plane"
    if sop_uid not in index.covered:
        return (), None
    if index.loose:
        raise SampleError(
            Reason.MASK_MISMATCH,
            "the segmentation was made from the image, but some of its frames name no single image and lie elsewhere",
        )
    return (), "nothing"


def slice_mask(
    index: SegmentationIndex,
    stored_frames: Mapping[int, NDArray[Any]] | NDArray[Any],
    sop_uid: str,
    shape: tuple[int, int],
    *,
    image_frame: int = 0,
    plane: Plane | None = None,
) -> SliceMask | None:
    """The mask of one image; None if the segmentation has nothing to do with it.

    BINARY: a pixel belongs to a segment where its stored value is not 0. FRACTIONAL: where it is at least half of
    MaximumFractionalValue. LABELMAP: stored values are segment numbers already.

    Args:
        stored_frames: stored values [rows, columns] by frame number from 0, of the frames that :func:`frames_of`
            gives at least; or of all, [frames, rows, columns].
        shape: rows and columns of the image.
        image_frame, plane: as for :func:`frames_of`.

    Raises:
        SampleError: ``mask_mismatch`` as for :func:`frames_of`; or if the size differs, or a frame that names the
            image lies more than half a pixel beside it (the pictures would not fit on each other); ``corrupt`` if a
            frame has another size than the header says.
    """
    frames, found_by = frames_of(index, sop_uid, image_frame=image_frame, plane=plane)
    if found_by is None:
        return None
    if shape != index.shape:
        raise SampleError(
            Reason.MASK_MISMATCH,
            f"the segmentation has {index.shape[1]}x{index.shape[0]} pixels, the image {shape[1]}x{shape[0]}",
        )
    for frame in frames:
        if plane is not None and frame.plane is not None and not overlay(plane, frame.plane, shape):
            raise SampleError(
                Reason.MASK_MISMATCH,
                f"frame {frame.frame + 1} of the segmentation names the image, but lies elsewhere",
            )
    values = np.full(shape, index.background, np.uint16 if index.wide else np.uint8)
    claims = np.zeros(shape, np.uint16)
    for number, stored in _layers(index, frames, stored_frames):
        inside = stored if number is not None else stored != index.background
        np.copyto(values, stored if number is None else number, where=inside, casting="unsafe")
        claims += inside
    return SliceMask(values, int((claims > 1).sum()), found_by)


def _layers(
    index: SegmentationIndex,
    frames: tuple[SegmentFrame, ...],
    stored_frames: Mapping[int, NDArray[Any]] | NDArray[Any],
) -> list[tuple[int | None, NDArray[Any]]]:
    """Segment number → where it is, bool, several frames of one segment together; None → label values."""
    layers: list[tuple[int | None, NDArray[Any]]] = []
    for frame in frames:
        stored = stored_frames[frame.frame]
        if stored.shape != index.shape:
            raise SampleError(
                Reason.CORRUPT, f"frame {frame.frame + 1} of the segmentation has the shape {stored.shape}"
            )
        if frame.segment is None:
            layers.append((None, stored))
            continue
        inside = stored != 0 if index.kind == "BINARY" else 2 * stored.astype(np.int64) >= index.maximum
        if layers and layers[-1][0] == frame.segment:
            inside |= layers.pop()[1]
        layers.append((frame.segment, inside))
    return layers


def _by_number(frames: tuple[SegmentFrame, ...] | list[SegmentFrame]) -> tuple[SegmentFrame, ...]:
    return tuple(sorted(frames, key=lambda frame: (frame.segment or 0, frame.frame)))
