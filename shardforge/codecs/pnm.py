"""Netpbm pictures, P1 to P6 (the pbm, pgm and ppm manual pages): header and decoding, first picture only."""

from __future__ import annotations

import re

import numpy as np

from shardforge.codecs.samples import Array, Header, Samples, attempt
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason

_GAP = rb"(?:\s|#[^\n\r]*[\n\r])+"
_NUMBER = rb"([0-9]{1,9})"
_BITMAP = re.compile(rb"P[14]" + _GAP + _NUMBER + _GAP + _NUMBER + rb"\s")
_LEVELS = re.compile(rb"P[2356]" + _GAP + _NUMBER + _GAP + _NUMBER + _GAP + _NUMBER + rb"\s")
_LONGEST_HEADER = 4096


def _parse(data: bytes) -> tuple[int, int, int, int, int]:
    """Kind (the digit), width, height, white and the offset of the samples."""
    kind = data[1] - 48
    if not 1 <= kind <= 6:
        raise SampleError(Reason.UNSUPPORTED, f"P{chr(data[1])}")
    match = (_BITMAP if kind in (1, 4) else _LEVELS).match(data[:_LONGEST_HEADER])
    if match is None:
        raise SampleError(Reason.TRUNCATED if len(data) < 9 else Reason.BAD_HEADER, "no valid header")
    width, height, *rest = (int(number) for number in match.groups())
    white = rest[0] if rest else 1
    if not width or not height or not 0 < white < 65536:
        raise SampleError(Reason.BAD_HEADER, f"{width} x {height}, white {white}")
    return kind, width, height, white, match.end()


def read_header(data: bytes) -> Header:
    """The size.

    Raises:
        SampleError: ``truncated``, ``bad_header``, or ``unsupported`` for PAM and PFM.
    """
    _, width, height, _, _ = _parse(data)
    return Header("pnm", width, height)


def stored(data: bytes) -> tuple[Array, int]:
    """The stored values [H, W] or [H, W, 3], uint8 or uint16, and the value of white; bitmaps have 1 for ink.

    Raises:
        SampleError: ``truncated``, ``corrupt`` (a value over white), or as :func:`read_header`.
    """
    kind, width, height, white, at = _parse(data)
    channels = 3 if kind in (3, 6) else 1
    count = width * height * channels
    if kind == 4:
        row = (width + 7) // 8
        values = np.unpackbits(_raw(data, at, row * height, np.dtype(np.uint8)).reshape(height, row), axis=1)[
            :, :width
        ]
    elif kind >= 5:
        values = _raw(data, at, count, np.dtype(np.uint8 if white < 256 else ">u2"))
    else:
        values = _spelled(data[at:], count, digits=kind == 1)
    if values.size and int(values.max()) > white:
        raise SampleError(Reason.CORRUPT, f"a value over {white}")
    shape = (height, width, 3) if channels == 3 else (height, width)
    return values.reshape(shape).astype(np.uint8 if white < 256 else np.uint16), white


def _raw(data: bytes, at: int, count: int, kind: np.dtype[np.generic]) -> Array:
    if at + count * kind.itemsize > len(data):
        raise SampleError(Reason.TRUNCATED, f"{len(data) - at} bytes of {count * kind.itemsize}")
    return np.frombuffer(data, kind, count, at)


def _spelled(text: bytes, count: int, *, digits: bool) -> Array:
    """Values written as decimal numbers, or as single digits that need no space between them."""
    # Each number takes two bytes at least, each digit one.
    if count > len(text):
        raise SampleError(Reason.TRUNCATED, f"{len(text)} bytes for {count} values")
    text = re.sub(rb"#[^\n\r]*", b" ", text)
    if re.fullmatch(rb"[\s0-9]*", text) is None:
        raise SampleError(Reason.CORRUPT, "something else than numbers")
    if digits:
        values: Array = np.frombuffer(text.translate(None, b" \t\n\r\v\f"), np.uint8)[:count] - 48
    else:
        values = attempt(lambda: np.fromstring(text, np.int64, count=count, sep=" "))
    if len(values) < count:
        raise SampleError(Reason.TRUNCATED, f"{len(values)} values of {count}")
    return values


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the first picture; maxval is white.

    Raises:
        SampleError: as :func:`stored`.
    """
    values, white = stored(data)
    return Samples(values, "rgb" if values.ndim == 3 else "grey", white, inverted=data[1:2] in (b"1", b"4"))
