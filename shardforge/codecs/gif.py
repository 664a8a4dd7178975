"""GIF (GIF89a specification): header and decoding of the first frame on its canvas."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import imagecodecs
import numpy as np

from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class Layout:
    """A GIF's blocks.

    Attributes:
        width, height: the canvas (logical screen).
        reach: width and height that would hold the canvas and every frame.
        frames: complete frames.
        first: left, top, width, height of the first frame, or None if it is incomplete.
        first_end: offset behind the first frame's data.
        has_palette: the first frame has a table of colours.
        ended: the trailer is there, behind whole blocks.
    """

    width: int
    height: int
    reach: tuple[int, int]
    frames: int
    first: tuple[int, int, int, int] | None
    first_end: int
    has_palette: bool
    ended: bool


def walk(data: bytes) -> Layout:
    """Goes through the blocks; a file that ends early has the frames that are complete.

    Raises:
        SampleError: ``truncated`` inside the header, ``bad_header`` for an empty canvas.
    """
    if len(data) < 13:
        raise SampleError(Reason.TRUNCATED, "the file ends inside the header")
    width, height, packed = struct.unpack_from("<HHB", data, 6)
    if not width or not height:
        raise SampleError(Reason.BAD_HEADER, f"canvas of {width} x {height}")
    global_palette = bool(packed & 0x80)
    at = 13 + (3 << ((packed & 7) + 1) if global_palette else 0)
    frames, first, first_end, has_palette, ended = 0, None, 0, global_palette, False
    reach_x, reach_y = width, height
    while at < len(data):
        kind = data[at]
        if kind == 0x21:
            at = skip_blocks(data, at + 2)
        elif kind == 0x2C and at + 10 <= len(data):
            left, top, w, h, packed = struct.unpack_from("<HHHHB", data, at + 1)
            reach_x, reach_y = max(reach_x, left + w), max(reach_y, top + h)
            at = skip_blocks(data, at + 11 + (3 << ((packed & 7) + 1) if packed & 0x80 else 0))
            if at < 0:
                break
            if first is None:
                first, first_end = (left, top, w, h), at
                has_palette = global_palette or bool(packed & 0x80)
            frames += 1
        else:
            ended = kind == 0x3B
            break
        if at < 0:
            break
    return Layout(width, height, (reach_x, reach_y), frames, first, first_end, has_palette, ended)


def skip_blocks(data: bytes, at: int) -> int:
    """The offset behind a chain of data sub-blocks, or -1 if the data ends first."""
    while at < len(data):
        size = data[at]
        at += 1 + size
        if size == 0:
            return at
    return -1


def read_header(data: bytes) -> Header:
    """Canvas and frames. The size is that of the canvas and all frames together, as frames may stick out. A file that
    does not come to its trailer is ``suspect``.

    Raises:
        SampleError: see :func:`walk`.
    """
    layout = walk(data)
    return Header("gif", *layout.reach, max(1, layout.frames), flags=() if layout.ended else (Flag.SUSPECT,))


def _single(data: bytes) -> tuple[bytes, tuple[int, int, int, int], Layout]:
    """The file with its first frame only, where that frame lies, and the layout.

    Without any table of colours the specification leaves the choice to the reader: it gets the usual ramp of greys.
    """
    layout = walk(data)
    if layout.first is None:
        raise SampleError(Reason.TRUNCATED, "the file ends inside the first frame")
    left, top, width, height = layout.first
    if left + width > layout.width or top + height > layout.height or not width or not height:
        raise SampleError(Reason.BAD_HEADER, "the first frame is empty or lies outside the canvas")
    single = data[: layout.first_end] + b";"
    if not layout.has_palette:
        ramp = bytes(level for level in range(256) for _ in range(3))
        single = single[:10] + bytes([single[10] | 0x87]) + single[11:13] + ramp + single[13:]
    return single, layout.first, layout


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the first frame; what it leaves uncovered of the canvas is transparent.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    single, (left, top, width, height), layout = _single(data)
    samples = plain_samples(attempt(lambda: imagecodecs.gif_decode(single)))
    if (width, height) == (layout.width, layout.height):
        return samples
    inside = np.zeros((layout.height, layout.width, 4), np.uint8)
    place = np.s_[top : top + height, left : left + width]
    inside[place][..., :3] = samples.values[place][..., :3]
    inside[place][..., 3] = samples.values[place][..., 3] if samples.alpha else 255
    return Samples(inside, "rgb", alpha=True)


def decode_labels(data: bytes) -> Array:
    """The colour indices of the first frame on its canvas, [H, W] uint8; 0 where it leaves the canvas uncovered.

    Raises:
        SampleError: as :func:`decode`.
    """
    single, (left, top, width, height), layout = _single(data)
    values = attempt(lambda: imagecodecs.gif_decode(single, asrgb=False))
    labels = np.zeros((layout.height, layout.width), np.uint8)
    place = np.s_[top : top + height, left : left + width]
    labels[place] = values.reshape(labels.shape)[place]
    return labels
