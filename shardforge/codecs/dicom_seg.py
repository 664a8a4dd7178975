"""Reads what a DICOM segmentation object (SEG) says of its frames (PS3.3 C.8.20.2, C.8.20.3)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator

from pydicom import Dataset

from shardforge.dicom.plane import Plane
from shardforge.dicom.segmentation import Code, Segment, SegmentationIndex, SegmentFrame
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

SEGMENTATION_CLASSES = frozenset({"1.2.840.10008.5.1.4.1.1.66.4", "1.2.840.10008.5.1.4.1.1.66.7"})
"""SOP classes Segmentation Storage and Label Map Segmentation Storage (PS3.4 B.5)."""

_CODES = {
    "SCT": r"[0-9]{6,18}",
    "SRT": r"[A-Z][A-Z0-9]?-[A-Z0-9]{3,6}",
    "SNM3": r"[A-Z][A-Z0-9]?-[A-Z0-9]{3,6}",
    "99SDM": r"[A-Z][A-Z0-9]?-[A-Z0-9]{3,6}",
    "DCM": r"[0-9]{6}",
    "FMA": r"[0-9]{1,7}",
    "RADLEX": r"RID[0-9]{1,6}",
    "NCIt": r"C[0-9]{1,7}",
    "UBERON": r"[0-9]{7}",
    "LN": r"(?:LP)?[0-9]{1,7}-[0-9]",
}
"""Public coding schemes (PS3.16 8) and the form of their codes; another form may hide an identifier."""

_BROKEN = (
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    TypeError,
    ValueError,
    struct.error,
)
"""What pydicom raises, when asked for it, for a value that cannot be read."""


def segmentation_index(dataset: Dataset) -> SegmentationIndex:
    """Which frames belong to which image; no pixel is looked at.

    Raises:
        SampleError: ``unsupported`` for another kind of object or segmentation, and for one whose frames are not
            described one by one; ``bad_header`` for one that contradicts itself.
    """
    try:
        if str(dataset.get("SOPClassUID", "")).strip(" \0") not in SEGMENTATION_CLASSES:
            raise SampleError(Reason.UNSUPPORTED, "no segmentation of pixels")
        return _index(dataset)
    except _BROKEN as error:
        raise SampleError(Reason.BAD_HEADER, f"the segmentation cannot be read ({type(error).__name__})") from None


def _index(dataset: Dataset) -> SegmentationIndex:
    kind = str(dataset.get("SegmentationType", "")).strip().upper()
    if kind not in ("BINARY", "FRACTIONAL", "LABELMAP"):
        raise SampleError(Reason.UNSUPPORTED, "a segmentation of another type than BINARY, FRACTIONAL and LABELMAP")
    groups = dataset.get("PerFrameFunctionalGroupsSequence") or ()
    if not groups:
        raise SampleError(Reason.UNSUPPORTED, "a segmentation that does not describe each frame")
    count = int(dataset.get("NumberOfFrames") or 1)
    if len(groups) != count:
        raise SampleError(Reason.BAD_HEADER, f"a segmentation of {count} frames describes {len(groups)}")
    shape = int(dataset.Rows), int(dataset.Columns)
    maximum = int(dataset.MaximumFractionalValue) if kind == "FRACTIONAL" else 1
    if min(*shape, maximum) < 1:
        raise SampleError(Reason.BAD_HEADER, f"a segmentation of shape {shape} with the maximum {maximum}")
    segments = _segments(dataset)
    shared = next(iter(dataset.get("SharedFunctionalGroupsSequence") or ()), Dataset())
    reference = str(dataset.get("FrameOfReferenceUID") or "")
    frames: list[SegmentFrame] = []
    by_image: dict[tuple[str, int | None], tuple[SegmentFrame, ...]] = {}
    covered = set(_instances(dataset))
    for number, group in enumerate(groups):
        frame = SegmentFrame(
            number,
            None if kind == "LABELMAP" else _segment_number(group, shared, segments),
            _plane(group, shared, reference),
        )
        frames.append(frame)
        images = list(dict.fromkeys(_sources(group, shared)))
        covered.update(image[0] for image, _ in images)
        # A frame made from several images (averaged, resampled) is the picture of none; where it lies decides.
        if len({image for image, _ in images}) == 1 and images[0][1]:
            by_image[images[0][0]] = (*by_image.get(images[0][0], ()), frame)
    return SegmentationIndex(
        kind=kind,  # type: ignore[arg-type]
        shape=shape,
        maximum=maximum,
        background=int(dataset.get("PixelPaddingValue") or 0) if kind == "LABELMAP" else 0,
        wide=max(segments) > 255 or (kind == "LABELMAP" and int(dataset.BitsAllocated) > 8),
        segments=tuple(segments.values()),
        frames=tuple(frames),
        by_image=by_image,
        covered=frozenset(covered),
        loose=len(frames) - sum(map(len, by_image.values())),
    )


def _segments(dataset: Dataset) -> dict[int, Segment]:
    segments: dict[int, Segment] = {}
    for item in dataset.get("SegmentSequence") or ():
        number = int(item.SegmentNumber)
        if number in segments:
            raise SampleError(Reason.BAD_HEADER, f"a segmentation has two segments {number}")
        category = _code(item, "SegmentedPropertyCategoryCodeSequence")
        segments[number] = Segment(number, category, _code(item, "SegmentedPropertyTypeCodeSequence"))
    if not segments:
        raise SampleError(Reason.BAD_HEADER, "a segmentation without segments")
    return dict(sorted(segments.items()))


def _code(item: Dataset, keyword: str) -> Code | None:
    for code in item.get(keyword) or ():
        scheme = str(code.get("CodingSchemeDesignator") or "").strip()
        value = str(code.get("CodeValue") or code.get("LongCodeValue") or "").strip()
        if re.fullmatch(_CODES.get(scheme, "(?!)"), value):
            return Code(scheme, value)
    return None


def _segment_number(group: Dataset, shared: Dataset, segments: dict[int, Segment]) -> int:
    number = int(_macro(group, shared, "SegmentIdentificationSequence").ReferencedSegmentNumber)
    if number < 1 or number not in segments:
        raise SampleError(Reason.BAD_HEADER, f"a segmentation refers to segment {number}, which it does not have")
    return number


def _sources(group: Dataset, shared: Dataset) -> Iterator[tuple[tuple[str, int | None], bool]]:
    """The images that a frame was made from, and whether pixels kept their place (PS3.3 C.7.6.16.2.6).

    The Referenced Image macro is left aside: it names pictures to look at, not those that were segmented.
    """
    for derivation in group.get("DerivationImageSequence") or shared.get("DerivationImageSequence") or ():
        for source in derivation.get("SourceImageSequence") or ():
            uid = _uid(source.ReferencedSOPInstanceUID)
            kept = str(source.get("SpatialLocationsPreserved") or "YES").strip().upper() == "YES"
            numbers = source.get("ReferencedFrameNumber")
            if numbers is None or numbers == "":
                yield (uid, None), kept
            else:
                for number in numbers if not isinstance(numbers, int | str) else (numbers,):
                    yield (uid, int(number) - 1), kept


def _instances(dataset: Dataset) -> Iterator[str]:
    for series in dataset.get("ReferencedSeriesSequence") or ():
        for instance in series.get("ReferencedInstanceSequence") or ():
            yield _uid(instance.ReferencedSOPInstanceUID)
    for instance in dataset.get("SourceImageSequence") or ():
        yield _uid(instance.ReferencedSOPInstanceUID)


def _plane(group: Dataset, shared: Dataset, reference: str) -> Plane | None:
    position = _numbers(_macro(group, shared, "PlanePositionSequence").get("ImagePositionPatient"), 3)
    orientation = _numbers(_macro(group, shared, "PlaneOrientationSequence").get("ImageOrientationPatient"), 6)
    spacing = _numbers(_macro(group, shared, "PixelMeasuresSequence").get("PixelSpacing"), 2)
    if not (position and orientation and spacing and reference) or min(spacing) <= 0:
        return None
    return Plane(_uid(reference), position, orientation, spacing)  # type: ignore[arg-type]


def _macro(group: Dataset, shared: Dataset, keyword: str) -> Dataset:
    """The item of a functional group: the frame's own before the shared one."""
    return next(iter(group.get(keyword) or shared.get(keyword) or ()), Dataset())


def _numbers(value: object, count: int) -> tuple[float, ...] | None:
    if value is None or isinstance(value, str | float) or len(value) != count:  # type: ignore[arg-type]
        return None
    numbers = tuple(float(number) for number in value)  # type: ignore[attr-defined]
    return numbers if all(map(math.isfinite, numbers)) else None


def _uid(value: object) -> str:
    return str(value).strip(" \0")
