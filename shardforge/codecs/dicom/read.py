"""Bytes of a DICOM file → what it says of its pixels, and where they stand. Nothing is decoded."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass, field

from pydicom.dataset import Dataset

from shardforge.codecs.dicom.fragments import Fragment, frames_of, walk_fragments
from shardforge.codecs.dicom.image_pixel import check_budget, has_image_module, read_frame_count, read_pixel_format
from shardforge.codecs.dicom.luts import read_palette
from shardforge.codecs.dicom.native import has_excess
from shardforge.codecs.dicom.parse import Parsed, PixelElement, parse_dicom
from shardforge.codecs.dicom.sop_classes import is_no_picture
from shardforge.codecs.dicom.syntaxes import DEFLATED_DATASETS, NATIVE, is_video, sniff_fragment
from shardforge.codecs.dicom.values import content, text
from shardforge.codecs.file_bytes import Bytes, FileBytes
from shardforge.codecs.limits import Limits
from shardforge.dicom.facts import Palette, PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_SOP_CLASS, _MODALITY, _EXTENDED_OFFSETS = 0x00080016, 0x00080060, 0x7FE00001
# What image_pixel, luts, meaning, voi, spacing, regions and groups read at the top level, and what matching a
# segmentation needs: SOPInstanceUID and FrameOfReferenceUID.
_NEEDED = (
    *(0x00080018, 0x00200052),
    *(_SOP_CLASS, _MODALITY, _EXTENDED_OFFSETS),
    *range(0x00280002, 0x00280012),
    *range(0x00280100, 0x00280104),
    *range(0x00281101, 0x00281104),
    *range(0x00281201, 0x00281204),
    *range(0x00281221, 0x00281224),
    *(0x00280120, 0x00280121, 0x00283000, 0x00281052, 0x00281053, 0x3004000E, 0x20500020),
    *(0x00281050, 0x00281051, 0x00281056, 0x00283010),
    *(0x00280030, 0x00280034, 0x00181164, 0x00182010, 0x00186011, 0x00200032, 0x00200037),
    *(0x52009229, 0x52009230),
)


@dataclass(frozen=True)
class DicomFile:
    """An image object, ready to decode frames of.

    Attributes:
        dataset: the elements before the pixel data.
        format: of the pixel data.
        frames: that the header counts; the data may hold fewer.
        sop_class, modality: as stated, or "".
        transfer_syntax: as stated, inferred where none is, and corrected where the data are encoded otherwise.
        palette: of PALETTE COLOR images; None also where it is unusable.
        flags: of the file as a whole.
        data: the bytes in which the offsets count; of a file that was opened as such they are read when needed.
        pixels: where the pixel data stand.
        fragments: those of each frame, where the pixel data are encapsulated; fewer than ``frames`` if the data end
            early. None for native pixel data.
    """

    dataset: Dataset = field(repr=False)
    format: PixelFormat
    frames: int
    sop_class: str
    modality: str
    transfer_syntax: str
    palette: Palette | None
    flags: tuple[Flag, ...]
    data: Bytes = field(repr=False)
    pixels: PixelElement
    fragments: tuple[tuple[Fragment, ...], ...] | None

    @property
    def frame_bytes(self) -> int:
        """Memory that the stored values of one frame take, in bytes."""
        of = self.format
        return of.rows * of.columns * of.samples * max(1, of.bits_allocated // 8)


def read_dicom(data: Bytes, limits: Limits, *, whole: bool = True) -> DicomFile:
    """Reads everything but the pixels, and judges the budget.

    Args:
        data: the whole file.
        whole: keep every element in ``dataset``. Without, it holds what making a sample of the image needs, which is
            read in a fraction of the time.

    Raises:
        SampleError: ``empty``, ``not_dicom``, ``corrupt``, ``over_budget``, ``not_a_picture``, ``no_pixels``,
            ``bad_header``, ``unsupported`` (videos, more than three samples), ``truncated`` where the file ends
            before the pixel data.
    """
    if len(data) > limits.source_bytes:
        raise SampleError(Reason.OVER_BUDGET, f"{len(data)} bytes, {limits.source_bytes} allowed")
    parsed = _parsed(data, limits, whole=whole)
    pixels = _pixels(parsed)
    pixel_format = read_pixel_format(parsed.dataset, pixels.tag)
    frames, flags = read_frame_count(parsed.dataset)
    check_budget(pixel_format, frames, limits)
    if is_video(parsed.transfer_syntax):
        raise SampleError(Reason.UNSUPPORTED, f"a video, {parsed.transfer_syntax}")
    body = data if parsed.inflated is None else parsed.inflated
    syntax, fragments, more = _layout(parsed, pixels, body, pixel_format, frames)
    palette = None
    if pixel_format.photometric == "PALETTE COLOR":
        palette = read_palette(parsed.dataset, signed=pixel_format.signed)
    return DicomFile(
        parsed.dataset,
        pixel_format,
        frames,
        text(parsed.dataset, _SOP_CLASS) or parsed.media_sop_class,
        text(parsed.dataset, _MODALITY),
        syntax,
        palette,
        (*parsed.flags, *flags, *more),
        body,
        pixels,
        fragments,
    )


def _parsed(data: Bytes, limits: Limits, *, whole: bool) -> Parsed:
    if not whole:
        parsed = _parsed_in_part(data, limits)
        if parsed.transfer_syntax not in DEFLATED_DATASETS:
            return parsed
    return parse_dicom(io.BytesIO(data[:]), max_inflated=limits.source_bytes, size=len(data))


def _parsed_in_part(data: Bytes, limits: Limits) -> Parsed:
    size, most = len(data), limits.source_bytes
    if isinstance(data, FileBytes):
        with data.file() as file:
            return parse_dicom(file, tags=_NEEDED, max_inflated=most, size=size)
    return parse_dicom(io.BytesIO(data), tags=_NEEDED, max_inflated=most, size=size, head_size=size)


def _pixels(parsed: Parsed) -> PixelElement:
    dataset = parsed.dataset
    if any(is_no_picture(uid) for uid in (text(dataset, _SOP_CLASS), parsed.media_sop_class)):
        raise SampleError(Reason.NOT_A_PICTURE, f"SOP class {text(dataset, _SOP_CLASS) or parsed.media_sop_class}")
    if parsed.pixels is None and parsed.problem is not None:
        raise SampleError(parsed.problem, "the elements end before the pixel data")
    if parsed.pixels is None or not has_image_module(dataset):
        raise SampleError(Reason.NO_PIXELS, "no pixel data, or nothing that describes them")
    return parsed.pixels


def _layout(
    parsed: Parsed, pixels: PixelElement, body: Bytes, pixel_format: PixelFormat, frames: int
) -> tuple[str, tuple[tuple[Fragment, ...], ...] | None, tuple[Flag, ...]]:
    """The transfer syntax that the data have, and the fragments of each frame."""
    syntax = parsed.transfer_syntax
    if pixels.length is not None:
        excess = has_excess(pixels, len(body), pixel_format, frames)
        flags: tuple[Flag, ...] = (Flag.EXCESS_FRAMES,) if excess else ()
        # Of defined length are native pixel data alone (PS3.5 A.4).
        return syntax, None, flags if syntax in NATIVE else (*flags, Flag.TS_MISMATCH)
    found = walk_fragments(body, pixels.start)
    groups, more = frames_of(body, found, frames, _extended_offsets(parsed.dataset))
    if syntax in NATIVE:
        first = groups[0][0] if groups else None
        sniffed = None if first is None else sniff_fragment(body[first.start : first.start + 1024])
        if sniffed is None:
            raise SampleError(Reason.CORRUPT, "encapsulated pixel data in a native transfer syntax")
        return sniffed, groups, more if Flag.TS_INFERRED in parsed.flags else (*more, Flag.TS_MISMATCH)
    return syntax, groups, more


def _extended_offsets(dataset: Dataset) -> tuple[int, ...]:
    found = content(dataset, _EXTENDED_OFFSETS)
    if found is None:
        return ()
    count = len(found[0]) // 8
    return struct.unpack_from(f"<{count}Q", found[0])
