"""Transfer syntaxes: how a dataset is written, and what its pixel data are encoded with (PS3.5 A, PS3.6 A)."""

from __future__ import annotations

from typing import Final

IMPLICIT_LE: Final = "1.2.840.10008.1.2"
EXPLICIT_LE: Final = "1.2.840.10008.1.2.1"
DEFLATED: Final = "1.2.840.10008.1.2.1.99"
EXPLICIT_BE: Final = "1.2.840.10008.1.2.2"
DEFLATED_FRAMES: Final = "1.2.840.10008.1.2.8.1"
RLE: Final = "1.2.840.10008.1.2.5"
JPEG_BASELINE: Final = "1.2.840.10008.1.2.4.50"
JPEG_EXTENDED: Final = "1.2.840.10008.1.2.4.51"
JPEG_SPECTRAL: Final = "1.2.840.10008.1.2.4.53"
JPEG_PROGRESSIVE: Final = "1.2.840.10008.1.2.4.55"
JPEG_LOSSLESS: Final = "1.2.840.10008.1.2.4.57"
JPEG_LOSSLESS_SV1: Final = "1.2.840.10008.1.2.4.70"
JPEG_LS_LOSSLESS: Final = "1.2.840.10008.1.2.4.80"
JPEG_LS_NEAR: Final = "1.2.840.10008.1.2.4.81"
J2K_LOSSLESS: Final = "1.2.840.10008.1.2.4.90"
J2K: Final = "1.2.840.10008.1.2.4.91"
HTJ2K_LOSSLESS: Final = "1.2.840.10008.1.2.4.201"
HTJ2K_RPCL: Final = "1.2.840.10008.1.2.4.202"
HTJ2K: Final = "1.2.840.10008.1.2.4.203"
JXL_LOSSLESS: Final = "1.2.840.10008.1.2.4.110"
JXL_JPEG: Final = "1.2.840.10008.1.2.4.111"
JXL: Final = "1.2.840.10008.1.2.4.112"

NATIVE: Final = frozenset((IMPLICIT_LE, EXPLICIT_LE, EXPLICIT_BE, DEFLATED))
"""Syntaxes whose pixel data are plain samples."""
DEFLATED_DATASETS: Final = frozenset((DEFLATED, "1.2.840.10008.1.2.4.95", "1.2.840.10008.1.2.4.205"))
"""Syntaxes that deflate the whole dataset (the latter two: JPIP references)."""


def sniff_fragment(fragment: bytes) -> str | None:
    """The transfer syntax of encapsulated pixel data, by the first bytes of a frame; None if they tell nothing.

    Lossless or not cannot be told from a JPEG-LS or JPEG 2000 stream's start; the more general syntax is given.
    """
    if fragment[:4] == b"\xff\x4f\xff\x51" or fragment[4:12] == b"jP  \r\n\x87\n":
        return HTJ2K if b"\xff\x50" in fragment[:256] else J2K
    if fragment[:2] == b"\xff\x0a" or fragment[4:12] == b"JXL \r\n\x87\n":
        return JXL
    if fragment[:3] == b"\xff\xd8\xff":
        return _sniff_jpeg(fragment)
    count = int.from_bytes(fragment[:4], "little")
    if 1 <= count <= 15 and fragment[4:8] == b"\x40\0\0\0":
        return RLE
    return None


_JPEG_KINDS = {
    0xC0: JPEG_BASELINE,
    0xC1: JPEG_EXTENDED,
    0xC2: JPEG_PROGRESSIVE,
    0xC3: JPEG_LOSSLESS,
    0xF7: JPEG_LS_NEAR,
}


def _sniff_jpeg(stream: bytes) -> str | None:
    """By the kind of the first frame header (T.81, table B.1; T.87, C.1.1)."""
    at = 2
    while at + 4 <= len(stream) and stream[at] == 0xFF:
        marker = stream[at + 1]
        if marker in _JPEG_KINDS:
            return _JPEG_KINDS[marker]
        if marker == 0xFF:
            at += 1
            continue
        at += 2 + int.from_bytes(stream[at + 2 : at + 4], "big")
    return None


def is_video(syntax: str) -> bool:
    """MPEG2, MPEG-4 AVC/H.264 and HEVC/H.265 (PS3.5 A.4.5 to A.4.9), fragmentable or not, and SMPTE ST 2110."""
    uncompressed = "1.2.840.10008.1.2.7."
    if syntax.startswith(uncompressed):
        return True
    number = syntax.removeprefix("1.2.840.10008.1.2.4.").split(".")[0]
    return number.isascii() and number.isdigit() and 100 <= int(number) <= 108
