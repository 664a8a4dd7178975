"""Later frames of a GIF, drawn on the canvas as a viewer shows them (GIF89a specification, 20, 23)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import imagecodecs
import numpy as np

from shardforge.codecs.canvas import Disposal, FrameRule, draw_frames
from shardforge.codecs.gif import skip_blocks
from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_DISPOSALS: dict[int, Disposal] = {2: "clear", 3: "restore"}
_RAMP = bytes(level for level in range(256) for _ in range(3))


@dataclass(frozen=True)
class _Frame:
    rule: FrameRule
    start: int
    """Offset of the image descriptor."""
    end: int
    transparent: int | None


def decode(data: bytes, header: Header) -> Samples:
    """The canvas while frame ``header.frame`` is shown. What a frame leaves behind as background is transparent, as
    in browsers.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    width, height, packed = struct.unpack_from("<HHB", data, 6)
    size = 3 << ((packed & 7) + 1) if packed & 0x80 else 0
    table = data[13 : 13 + size] or _RAMP
    frames = list(_frames(data, 13 + size))
    if header.frame >= len(frames):
        raise SampleError(Reason.TRUNCATED, f"{len(frames)} whole frames, number {header.frame} is wanted")
    rules = [frame.rule for frame in frames]
    canvas = draw_frames(rules, lambda number: _rgba(data, frames[number], table), width, height, header.frame)
    return plain_samples(canvas)


def _frames(data: bytes, at: int) -> Iterator[_Frame]:
    """The frames that are whole, each with the graphic control extension before it."""
    disposal, transparent = 0, None
    while at + 2 <= len(data):
        if data[at] == 0x21:
            if data[at + 1] == 0xF9 and data[at + 2 : at + 3] == b"\4" and at + 7 <= len(data):
                flags = data[at + 3]
                disposal, transparent = flags >> 2 & 7, data[at + 6] if flags & 1 else None
            at = skip_blocks(data, at + 2)
        elif data[at] == 0x2C and at + 10 <= len(data):
            left, top, width, height, packed = struct.unpack_from("<HHHHB", data, at + 1)
            end = skip_blocks(data, at + 11 + (3 << ((packed & 7) + 1) if packed & 0x80 else 0))
            if end < 0:
                return
            opaque = transparent is None
            rule = FrameRule(left, top, width, height, not opaque, _DISPOSALS.get(disposal, "keep"))
            yield _Frame(rule, at, end, transparent)
            disposal, transparent, at = 0, None, end
        else:
            return
        if at < 0:
            return


def _rgba(data: bytes, frame: _Frame, table: bytes) -> Array:
    """A frame alone: its indices through its own table of colours or the common one."""
    packed = data[frame.start + 9]
    size = 3 << ((packed & 7) + 1) if packed & 0x80 else 0
    table = data[frame.start + 10 : frame.start + 10 + size] or table
    width, height = frame.rule.width, frame.rule.height
    # A file of this frame only, with a table of its own so large that no index lies outside.
    head = data[:6] + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + _RAMP
    descriptor = b"," + struct.pack("<HHHHB", 0, 0, width, height, packed & 0x40)
    single = head + descriptor + data[frame.start + 10 + size : frame.end] + b";"
    indices = attempt(lambda: imagecodecs.gif_decode(single, asrgb=False)).reshape(height, width)
    colours = np.zeros((256, 4), np.uint8)
    known = np.frombuffer(table, np.uint8).reshape(-1, 3)
    colours[: len(known), :3] = known
    colours[:, 3] = 255
    if frame.transparent is not None:
        colours[frame.transparent] = 0
    return np.asarray(colours[indices])
