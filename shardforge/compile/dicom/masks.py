"""Masks of slices, from the segmentation objects that refer to them."""

from __future__ import annotations

from dataclasses import dataclass

from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.dicom.values import text
from shardforge.codecs.dicom_seg import segmentation_index
from shardforge.codecs.encode import encode_mask
from shardforge.codecs.limits import Limits
from shardforge.dicom.facts import FrameMeaning
from shardforge.dicom.plane import Plane
from shardforge.dicom.segmentation import SegmentationIndex, frames_of, slice_mask
from shardforge.errors import SampleError
from shardforge.geometry.resample import cut_out
from shardforge.geometry.resize import Placement, resize_mask
from shardforge.shards.catalogue import Flag, Reason

_SOP_INSTANCE, _FRAME_OF_REFERENCE = 0x00080018, 0x00200052


@dataclass(frozen=True)
class _Parsed:
    data: bytes
    file: DicomFile
    index: SegmentationIndex


class SegmentationMasks:
    """Makes mask members; keeps the segmentation it has parsed last, which the next slice is likely to share."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: _Parsed | None = None

    def member(
        self,
        data: bytes,
        image: DicomFile,
        number: int,
        meaning: FrameMeaning,
        placement: Placement,
        noticed: list[Flag],
    ) -> bytes:
        """The mask of one frame of an image, brought to where the image is, as PNG.

        Args:
            data: the segmentation object's file.
            noticed: takes ``mask_overlap`` where segments claim the same pixels of the image, cropped away or not.

        Raises:
            SampleError: ``mask_mismatch``, or what is wrong with the segmentation.
        """
        found = self._parse(data)
        sop = text(image.dataset, _SOP_INSTANCE)
        plane = _plane(image, meaning)
        frames, _ = frames_of(found.index, sop, image_frame=number, plane=plane)
        stored = {frame.frame: decode_frame(found.file, frame.frame).values for frame in frames}
        shape = (image.format.rows, image.format.columns)
        mask = slice_mask(found.index, stored, sop, shape, image_frame=number, plane=plane)
        if mask is None:
            raise SampleError(Reason.MASK_MISMATCH, "the segmentation does not refer to this image")
        if mask.overlapping:
            noticed.append(Flag.MASK_OVERLAP)
        return encode_mask(resize_mask(cut_out(mask.values, placement), placement))

    def _parse(self, data: bytes) -> _Parsed:
        last = self._last
        if last is None or last.data != data:
            file = read_dicom(data, self._limits)
            last = self._last = _Parsed(data, file, segmentation_index(file.dataset))
        return last


def _plane(image: DicomFile, meaning: FrameMeaning) -> Plane | None:
    if meaning.position is None or meaning.orientation is None or meaning.spacing is None:
        return None
    return Plane(text(image.dataset, _FRAME_OF_REFERENCE), meaning.position, meaning.orientation, meaning.spacing)
