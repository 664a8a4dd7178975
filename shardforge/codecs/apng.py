"""Frames of an animated PNG (PNG specification, third edition, 11.3.6)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from shardforge.codecs import png
from shardforge.codecs.canvas import Disposal, FrameRule, draw_frames
from shardforge.codecs.colour import to_uint8
from shardforge.codecs.samples import Array, Header, Samples, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_DISPOSALS: dict[int, Disposal] = {0: "keep", 1: "clear", 2: "restore"}


@dataclass(frozen=True)
class _Frame:
    rule: FrameRule
    data: tuple[tuple[int, int], ...]
    """Offsets of the compressed parts."""


def decode(data: bytes, header: Header) -> Samples:
    """The canvas while frame ``header.frame`` is shown; transparent where nothing has been drawn.

    A default image that is no part of the animation is none of its frames.

    Raises:
        SampleError: ``truncated`` where the file ends before the frame does, ``corrupt`` or ``bad_header``.
    """
    frames, problem = _frames(data)
    wanted = header.frame
    if wanted >= len(frames):
        raise SampleError(problem, f"{len(frames)} whole frames in the animation, number {wanted} is wanted")
    needed = [chunk for chunk in png.chunks(data) if chunk.kind in (b"PLTE", b"tRNS")]
    extra = b"".join(_whole(data, chunk) for chunk in needed)

    def pixels(number: int) -> Array:
        return _rgba(_decoded(data, frames[number], extra))

    rules = [frame.rule for frame in frames]
    dtype = np.uint16 if data[24] == 16 else np.uint8
    return plain_samples(draw_frames(rules, pixels, header.width, header.height, wanted, dtype))


def _whole(data: bytes, chunk: png.Chunk) -> bytes:
    if chunk.end + 4 > len(data):
        raise SampleError(Reason.TRUNCATED, f"the file ends inside {chunk.kind.decode('latin-1')}")
    if not png.is_intact(data, chunk):
        raise SampleError(Reason.CORRUPT, f"wrong checksum in {chunk.kind.decode('latin-1')}")
    return data[chunk.start : chunk.end + 4]


def _frames(data: bytes) -> tuple[list[_Frame], Reason]:
    """The frames before the first that is not whole, and what is wrong with the next."""
    frames: list[_Frame] = []
    rule: FrameRule | None = None
    parts: list[tuple[int, int]] = []
    expected, in_animation, seen_pixels = 0, False, False
    for chunk in png.chunks(data):
        if chunk.kind == b"IEND":
            break
        if chunk.kind not in (b"fcTL", b"fdAT", b"IDAT"):
            continue
        problem = _problem(data, chunk, expected)
        if problem is not None:
            # A frame ends where the next begins.
            return (_with(frames, rule, parts) if chunk.kind == b"fcTL" else frames), problem
        if chunk.kind == b"IDAT":
            seen_pixels = True
            if in_animation and not frames:
                parts.append((chunk.payload, chunk.end))
            continue
        expected += 1
        if chunk.kind == b"fcTL":
            frames = _with(frames, rule, parts)
            rule, parts = _rule(data, chunk), []
            in_animation = in_animation or not seen_pixels
        elif rule is not None:
            parts.append((chunk.payload + 4, chunk.end))
    # Without an end the last frame may lack a part; its decoder will tell.
    return _with(frames, rule, parts), Reason.TRUNCATED


def _problem(data: bytes, chunk: png.Chunk, expected: int) -> Reason | None:
    if chunk.end + 4 > len(data):
        return Reason.TRUNCATED
    numbered = chunk.kind != b"IDAT"
    gap = numbered and data[chunk.payload : chunk.payload + 4] != expected.to_bytes(4, "big")
    return Reason.CORRUPT if gap or not png.is_intact(data, chunk) else None


def _with(frames: list[_Frame], rule: FrameRule | None, parts: Sequence[tuple[int, int]]) -> list[_Frame]:
    return frames if rule is None else [*frames, _Frame(rule, tuple(parts))]


def _rule(data: bytes, chunk: png.Chunk) -> FrameRule:
    if chunk.end - chunk.payload != 26:
        raise SampleError(Reason.CORRUPT, "a frame control chunk of a wrong length")
    width, height, left, top, _, _, disposal, blend = struct.unpack_from(">IIIIHHBB", data, chunk.payload + 4)
    if disposal not in _DISPOSALS or blend > 1:
        raise SampleError(Reason.BAD_HEADER, f"frame with disposal {disposal}, blending {blend}")
    return FrameRule(left, top, width, height, blend == 1, _DISPOSALS[disposal])


def _decoded(data: bytes, frame: _Frame, extra: bytes) -> Samples:
    content = struct.pack(">II", frame.rule.width, frame.rule.height) + data[24:29]
    parts = [data[start:end] for start, end in frame.data]
    file = chain(
        (png.SIGNATURE, png.chunk_of(b"IHDR", content), extra),
        (png.chunk_of(b"IDAT", part) for part in parts),
        (png.chunk_of(b"IEND", b""),),
    )
    return png.decode(b"".join(file), Header("png", frame.rule.width, frame.rule.height))


def _rgba(samples: Samples) -> Array:
    values = samples.values if samples.values.dtype == np.uint16 else to_uint8(samples)[0]
    if samples.model == "grey":
        colours = values[..., :1] if samples.alpha else values[..., None]
        alpha = values[..., 1:] if samples.alpha else None
        colours = np.repeat(colours, 3, axis=2)
    else:
        colours, alpha = values[..., :3], values[..., 3:] if samples.alpha else None
    if alpha is None:
        alpha = np.full((*colours.shape[:2], 1), np.iinfo(values.dtype).max, values.dtype)
    return np.concatenate([colours, alpha], axis=2)
