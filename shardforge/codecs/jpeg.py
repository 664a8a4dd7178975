"""JPEG: header, decoding, and the judgement of damage.

A picture is decoded strictly. If the strict decoder refuses, the file is put together again from its essential
segments (junk between segments, broken profiles and the like go) with an end marker, and decoded strictly once more;
only what it says then counts:

==========================================  =======================================================================
clean after putting together again          kept; ``missing_eoi`` or ``extraneous_bytes`` (and ``suspect``) if so
padding (00, FF) before the end marker      kept, ``suspect`` and ``extraneous_bytes``: the picture came before it
a restart marker with another number        kept, ``suspect`` and ``corrupt_data``: all intervals are in their places
extraneous bytes between two scans          kept, ``suspect``, ``extraneous_bytes`` and ``corrupt_data``
data ends early                             fails as ``truncated``
anything else                               fails as ``corrupt``
==========================================  =======================================================================

The strict decoder stops at its first complaint, so a kept picture with ``corrupt_data`` may have further damage.
On request what would fail as ``corrupt`` is kept too, ``suspect`` and ``corrupt_data``, if no part of it is missing.
"""

from __future__ import annotations

import re

import imagecodecs
import simplejpeg

from shardforge.codecs.exif import exif_orientation
from shardforge.codecs.jpeg_damage import reaches_the_end
from shardforge.codecs.jpeg_restarts import Restarts, renumbered, restarts
from shardforge.codecs.jpeg_segments import (
    APP0,
    APP14,
    APP15,
    COM,
    JPEG_LS,
    PROGRESSIVE,
    SOS,
    Frame,
    Layout,
    Segment,
    exif_block,
    frame_of,
    has_adobe,
    icc_profile,
    rebuild,
    scans_complete,
    walk,
)
from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_EXTRANEOUS = re.compile(r"(\d+) extraneous bytes before marker 0x([0-9a-f]{2})")
_LOSSLESS = frozenset((0xC3, 0xCB))
_COLORSPACES = {1: "GRAY", 3: "RGB", 4: "CMYK"}


def read_header(data: bytes) -> Header:
    """The header up to the first scan.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``bad_header`` or ``unsupported``.
    """
    layout = walk(data, whole=False)
    frame = frame_of(data, layout)
    flags: list[Flag] = []
    exif = exif_block(data, layout)
    orientation, readable = (None, True) if exif is None else exif_orientation(exif)
    if not readable:
        flags.append(Flag.EXIF_UNREADABLE)
    profile, readable = icc_profile(data, layout)
    if not readable:
        flags.append(Flag.ICC_UNREADABLE)
    return Header("jpeg", frame.width, frame.height, 1, orientation, profile, flags=tuple(flags))


def decode(
    data: bytes, header: Header, enough: tuple[int, int] | None = None, *, keep_damaged: bool = False
) -> Samples:
    """Decodes the first picture of a file (the main one of an MPO or gain-map file).

    Args:
        enough: stored width and height that are enough: the picture then comes at 1/2, 1/4 or 1/8 if that is no
            smaller. All entropy-coded data are read all the same, so damage is found as in a full decode.
        keep_damaged: keep a picture whose entropy-coded data are damaged, unless a part of it is missing.

    Raises:
        SampleError: as the module's table says; ``unsupported`` for JPEG-LS and unusual numbers of components.
    """
    layout = walk(data, whole=False)
    frame = frame_of(data, layout)
    components = len(frame.components)
    if frame.kind == JPEG_LS:
        raise SampleError(Reason.UNSUPPORTED, "JPEG-LS")
    if components not in _COLORSPACES:
        raise SampleError(Reason.UNSUPPORTED, f"{components} components")
    if layout.segments[-1].marker != SOS:
        raise SampleError(Reason.CORRUPT if layout.ended else Reason.TRUNCATED, "no scan")
    if frame.precision != 8 or frame.kind in _LOSSLESS:
        return _deep(data, frame)
    _check_size(data, header)
    flags: tuple[Flag, ...] = ()
    reduction = 1 if enough is None else _reduction(header.width, header.height, enough)
    try:
        values = _decoded(data, frame, reduction)
    except ValueError as error:
        values, flags = _recover(data, frame, reduction, str(error), keep_damaged)
    if _in_several_scans(data, layout, frame) and not scans_complete(data, walk(data, whole=True), frame):
        # Decoders say nothing about scans that never come.
        raise SampleError(Reason.TRUNCATED, "scans are missing")
    if values.shape[:2] != (-(-header.height // reduction), -(-header.width // reduction)):
        raise SampleError(Reason.CORRUPT, f"decodes to {values.shape[1]} x {values.shape[0]} at 1/{reduction}")
    if components == 1:
        return Samples(values[:, :, 0], "grey", reduction=reduction, flags=flags)
    if components == 3:
        return Samples(values, "rgb", reduction=reduction, flags=flags)
    # Adobe applications store ink inverted; without their marker that is a guess, and the usual one.
    if not has_adobe(data, layout):
        flags = (*flags, Flag.CMYK_ASSUMED_INVERTED)
    return Samples(255 - values, "cmyk", reduction=reduction, flags=flags)


def _in_several_scans(data: bytes, layout: Layout, frame: Frame) -> bool:
    return frame.kind in PROGRESSIVE or data[layout.segments[-1].payload] < len(frame.components)


def _reduction(width: int, height: int, enough: tuple[int, int]) -> int:
    """The largest reduction whose result is no smaller. Only powers of two: others decode slower than in full."""
    fitting = (k for k in (8, 4, 2) if width >= k * enough[0] and height >= k * enough[1])
    return next(fitting, 1)


def _check_size(data: bytes, header: Header) -> None:
    """Refuses a file that the decoder reads another size from than the one the budget was checked with."""
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(data, strict=False)
    except Exception as error:
        raise SampleError(Reason.CORRUPT, str(error)) from None
    if (width, height) != (header.width, header.height):
        raise SampleError(Reason.CORRUPT, f"two sizes: {header.width} x {header.height} and {width} x {height}")


def _decoded(data: bytes, frame: Frame, reduction: int, *, strict: bool = True) -> Array:
    return simplejpeg.decode_jpeg(  # type: ignore[no-any-return]
        data,
        _COLORSPACES[len(frame.components)],
        min_height=-(-frame.height // reduction),
        min_width=-(-frame.width // reduction),
        strict=strict,
    )


def _recover(
    data: bytes, frame: Frame, reduction: int, complaint: str, keep_damaged: bool
) -> tuple[Array, tuple[Flag, ...]]:
    if "nsupported" in complaint:
        raise SampleError(Reason.UNSUPPORTED, complaint)
    layout = walk(data, whole=True)
    flags: list[Flag] = []
    if not layout.ended:
        if not scans_complete(data, layout, frame):
            raise SampleError(Reason.TRUNCATED, complaint)
        flags.append(Flag.MISSING_EOI)
    if layout.junk:
        flags.append(Flag.EXTRANEOUS_BYTES)
    order = restarts(data, layout)
    if order in (Restarts.ENDED, Restarts.LOST):
        reason = Reason.TRUNCATED if order is Restarts.ENDED else Reason.CORRUPT
        raise SampleError(reason, f"restart intervals are missing: {complaint}")
    if order is not Restarts.IN_ORDER:
        flags.append(Flag.CORRUPT_DATA)
        data = renumbered(data, layout)
    if order is Restarts.DISPLACED and not keep_damaged:
        raise SampleError(Reason.CORRUPT, f"restart intervals are displaced: {complaint}")
    essential = rebuild(data, layout, _is_essential)
    try:
        values = _decoded(essential, frame, reduction)
    except ValueError as error:
        try:
            flags += _judge(str(error), layout, essential, frame, reduction)
        except SampleError as lost:
            if not keep_damaged or lost.reason is not Reason.CORRUPT or not scans_complete(data, layout, frame):
                raise
            flags.append(Flag.CORRUPT_DATA)
        if Flag.CORRUPT_DATA in flags and not _reaches_the_end(essential, frame, reduction):
            raise SampleError(Reason.TRUNCATED, str(error)) from None
        values = attempt(lambda: _decoded(essential, frame, reduction, strict=False))
    return values, (Flag.SUSPECT, *dict.fromkeys(flags)) if flags else ()


def _reaches_the_end(essential: bytes, frame: Frame, reduction: int) -> bool:
    def tolerant(data: bytes) -> Array:
        return attempt(lambda: _decoded(data, frame, reduction, strict=False))

    return reaches_the_end(essential, tolerant, reduction)


def _is_essential(segment: Segment) -> bool:
    """Whether decoding depends on a segment; of the application segments JFIF and Adobe tell the colour transform."""
    return segment.marker in (APP0, APP14) or not (APP0 <= segment.marker <= APP15 or segment.marker == COM)


def _judge(complaint: str, layout: Layout, data: bytes, frame: Frame, reduction: int) -> list[Flag]:
    """What a strict decoder's complaint means for a file put together again; raises if the picture is lost."""
    if "nsupported" in complaint:
        raise SampleError(Reason.UNSUPPORTED, complaint)
    extraneous = _EXTRANEOUS.search(complaint)
    marker = int(extraneous[2], 16) if extraneous else None
    if marker == 0xD9 and extraneous is not None:
        # Padding; or what a decoder that has lost its place leaves over, and then the picture is not the one meant.
        left = data[-2 - int(extraneous[1]) : -2]
        if left.strip(b"\0\xff"):
            raise SampleError(Reason.CORRUPT, complaint)
        if not _ends_before_padding(data, frame, reduction):
            raise SampleError(Reason.TRUNCATED, f"zeros in the place of data: {complaint}")
        return [Flag.EXTRANEOUS_BYTES]
    restart = marker is not None and 0xD0 <= marker <= 0xD7
    if marker is not None and not restart and layout.ended:
        return [Flag.EXTRANEOUS_BYTES, Flag.CORRUPT_DATA]
    raise SampleError(Reason.CORRUPT if layout.ended else Reason.TRUNCATED, complaint)


def _ends_before_padding(data: bytes, frame: Frame, reduction: int) -> bool:
    """Whether the picture is whole without the padding: zeros decode as well, into blocks that nobody meant."""
    picture = data[:-2].rstrip(b"\0\xff")
    # A stuffed byte at the end of the data looks like padding.
    stuffed = data[len(picture) : -2][:2]
    try:
        _decoded(b"".join((picture, stuffed, b"\xff\xd9")), frame, reduction)
    except ValueError as error:
        extraneous = _EXTRANEOUS.search(str(error))
        return extraneous is not None and int(extraneous[2], 16) == 0xD9
    return True


def _deep(data: bytes, frame: Frame) -> Samples:
    """Lossless JPEG, and more than 8 bits per sample. This decoder never complains: the end marker must be there."""
    if len(frame.components) == 4 or not 8 <= frame.precision <= 16:
        raise SampleError(Reason.UNSUPPORTED, f"{len(frame.components)} components of {frame.precision} bits")
    if not walk(data, whole=True).ended:
        raise SampleError(Reason.TRUNCATED, "no end marker")
    return plain_samples(attempt(lambda: imagecodecs.jpeg8_decode(data)), (1 << frame.precision) - 1)
