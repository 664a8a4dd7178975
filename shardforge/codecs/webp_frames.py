"""Later frames of an animated WebP, drawn on the canvas as a viewer shows them (RFC 9649, 2.7)."""

from __future__ import annotations

import imagecodecs

from shardforge.codecs import webp
from shardforge.codecs.canvas import FrameRule, draw_frames
from shardforge.codecs.samples import Array, Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_ALPHA = 0x10
_PICTURE = frozenset((b"VP8 ", b"VP8L", b"ALPH"))


def decode(data: bytes, header: Header) -> Samples:
    """The canvas while frame ``header.frame`` is shown. Its background is transparent: the declared colour is a hint
    that viewers may ignore.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``bad_header``.
    """
    frames = [chunk for chunk in webp.chunks(data) if chunk.kind == b"ANMF"]
    last = frames[header.frame] if header.frame < len(frames) else None
    if last is None or last.end > len(data):
        raise SampleError(Reason.TRUNCATED, f"the file ends before or inside frame {header.frame}")
    rules = [_rule(data, chunk) for chunk in frames[: header.frame + 1]]

    def pixels(number: int) -> Array:
        return _rgba(data, frames[number], rules[number])

    return plain_samples(draw_frames(rules, pixels, header.width, header.height, header.frame))


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 3], "little")


def _rule(data: bytes, chunk: webp.Chunk) -> FrameRule:
    at = chunk.payload
    if chunk.end - at < 16:
        raise SampleError(Reason.CORRUPT, "a frame chunk that is too short")
    left, top = 2 * _number(data, at), 2 * _number(data, at + 3)
    width, height = _number(data, at + 6) + 1, _number(data, at + 9) + 1
    flags = data[at + 15]
    return FrameRule(left, top, width, height, not flags & 2, "clear" if flags & 1 else "keep")


def _rgba(data: bytes, chunk: webp.Chunk, rule: FrameRule) -> Array:
    """A frame alone, as a still picture of its own."""
    inner = [part for part in webp.chunks(data, chunk.payload + 16, chunk.end) if part.kind in _PICTURE]
    size = (rule.width - 1).to_bytes(3, "little") + (rule.height - 1).to_bytes(3, "little")
    flags = _ALPHA if any(part.kind != b"VP8 " for part in inner) else 0
    body = b"VP8X" + (10).to_bytes(4, "little") + bytes([flags, 0, 0, 0]) + size
    for part in inner:
        content = data[part.payload : part.end]
        body += part.kind + len(content).to_bytes(4, "little") + content + b"\0" * (len(content) & 1)
    still = b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body
    values = attempt(lambda: imagecodecs.webp_decode(still, hasalpha=True))
    if values.shape != (rule.height, rule.width, 4):
        raise SampleError(Reason.CORRUPT, f"a frame of {values.shape} where {rule.width} x {rule.height} is declared")
    return values
