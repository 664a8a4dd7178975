"""JPEG XL (ISO/IEC 18181-1): header and decoding."""

from __future__ import annotations

import imagecodecs

from shardforge.codecs.isobmff import boxes
from shardforge.codecs.samples import Header, Samples, attempt, plain_samples
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_RATIOS = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}
_LONGEST = 64
"""Bytes; the fields read here take fewer, whatever they hold."""


class _Bits:
    """Bits of a codestream, each byte's lowest first; beyond its end zeros."""

    def __init__(self, data: bytes) -> None:
        self._bits = int.from_bytes(data, "little")

    def take(self, count: int) -> int:
        value = self._bits & ((1 << count) - 1)
        self._bits >>= count
        return value

    def size(self) -> tuple[int, int]:
        """Width and height (SizeHeader)."""
        small = self.take(1)

        def length() -> int:
            return (self.take(5) + 1) * 8 if small else self.take((9, 13, 18, 30)[self.take(2)]) + 1

        height = length()
        ratio = self.take(3)
        if ratio:
            top, bottom = _RATIOS[ratio]
            return height * top // bottom, height
        return length(), height

    def skip_preview(self) -> None:
        """PreviewHeader."""
        eighths = self.take(1)

        def length() -> None:
            # Some of the choices are constants, of no bits.
            self.take(((0, 0, 5, 9) if eighths else (6, 8, 10, 12))[self.take(2)])

        length()
        if not self.take(3):
            length()


def read_header(data: bytes) -> Header:
    """The size, upright as the decoder turns the picture itself, and whether it is animated.

    A file does not say how many frames it has; an animated one counts as two, with ``counted`` false.

    Raises:
        SampleError: ``truncated``.
    """
    start, end = 0, len(data)
    if data[:2] != b"\xff\x0a":
        found = next((box for box in boxes(data, 0, len(data)) if box.kind in (b"jxlc", b"jxlp")), None)
        if found is None:
            raise SampleError(Reason.TRUNCATED, "no codestream")
        start, end = found.payload + (4 if found.kind == b"jxlp" else 0), found.end
    bits = _Bits(data[start + 2 : min(end, start + _LONGEST)])
    width, height = bits.size()
    animated = _is_animated(bits)
    return Header("jxl", width, height, 2 if animated else 1, counted=not animated)


def _is_animated(bits: _Bits) -> bool:
    """The beginning of ImageMetadata."""
    all_default = bits.take(1)
    if all_default or not bits.take(1):
        return False
    bits.take(3)
    if bits.take(1):
        # The intrinsic size.
        bits.size()
    if bits.take(1):
        bits.skip_preview()
    return bool(bits.take(1))


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the first frame with libjxl.

    Raises:
        SampleError: ``corrupt`` or ``unsupported``.
    """
    return plain_samples(attempt(lambda: imagecodecs.jpegxl_decode(data, 0, numthreads=1)))
