"""Taking metadata out of a file without touching its pixels."""

from __future__ import annotations

import struct
import zlib

from shardforge.codecs import jpeg_segments, png, webp
from shardforge.codecs.jpeg_segments import APP0, APP14, APP15, COM, Segment
from shardforge.codecs.jpeg_tables import used_tables

_PNG_KEPT = frozenset(b"IHDR PLTE IDAT tRNS gAMA cHRM sRGB sBIT bKGD cICP mDCV cLLI".split())
# A profile overrides them: without it they would count.
_PNG_BESIDE_PROFILE = frozenset((b"gAMA", b"cHRM"))
# Chunks of fixed or bounded length: whatever is longer carries something else.
_PNG_LONGEST = {b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"cICP": 4, b"mDCV": 24, b"cLLI": 8, b"sBIT": 4, b"bKGD": 6}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Left, top, and steps across and down of the seven passes."""
_DNL = 0xDC
_WEBP_KEPT = frozenset((b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ANIM", b"ANMF"))
_FRAME_KEPT = frozenset((b"VP8 ", b"VP8L", b"ALPH"))


def strip_metadata(data: bytes, format: str) -> bytes:
    """Drops EXIF, XMP, IPTC, comments, thumbnails, maker notes, text, colour profiles, tables of a JPEG that no scan
    uses, unknown blocks, and bytes behind the picture.

    Of an animated PNG only its default image stays. What the pixels need to look right stays: Adobe's colour
    transform, transparency, gamma. The declared orientation and the profile go, which may say anything in words: a
    picture that is not upright or whose profile is of use has to be turned, converted and encoded again instead.

    Args:
        data: a whole JPEG, PNG or WebP file that decodes.
        format: ``jpeg``, ``png`` or ``webp``.

    Raises:
        SampleError: a JPEG whose segments cannot be told apart (none that decodes).
        ValueError: another format.
    """
    match format:
        case "jpeg":
            return _strip_jpeg(data)
        case "png":
            return _strip_png(data)
        case "webp":
            return _strip_webp(data)
        case _:
            raise ValueError(f"metadata of {format} files cannot be stripped")


def holds_only_pixels(data: bytes, format: str) -> bool:
    """Whether the pixels of a PNG or WebP are followed by nothing, inside their stream or chunk or behind it.

    Decoders pass over such bytes, so they survive :func:`strip_metadata`. True for JPEG, whose
    decoder notices them; they then have a flag.
    """
    if format == "webp":
        return webp.holds_only_picture(data)
    if format != "png":
        return True
    inflate, size, most = zlib.decompressobj(), 0, 0
    for chunk in png.chunks(data):
        if chunk.kind == b"IHDR":
            most = _filtered_size(data[chunk.payload : chunk.payload + 13])
        elif chunk.kind == b"IDAT":
            waiting = data[chunk.payload : chunk.end]
            while waiting and not inflate.eof and size <= most:
                size += len(inflate.decompress(waiting, 1 << 20))
                waiting = inflate.unconsumed_tail
            if waiting:
                return False
    # All input may be taken while output still waits inside the decompressor.
    while not inflate.eof and size <= most and (rest := inflate.decompress(b"", 1 << 20)):
        size += len(rest)
    return inflate.eof and not inflate.unused_data and size == most


def _filtered_size(head: bytes) -> int:
    """Bytes of a PNG's pixels with their filter bytes, by its IHDR (PNG specification, 7.2 and 8)."""
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    sizes = ((-((left - width) // across), -((top - height) // down)) for left, top, across, down in passes)
    return sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)


def _strip_jpeg(data: bytes) -> bytes:
    layout = jpeg_segments.walk(data, whole=True)

    def needed(segment: Segment) -> bool:
        head = data[segment.payload : segment.payload + 12]
        if segment.marker == APP0:
            return head.startswith(b"JFIF\0")
        if segment.marker == APP14:
            return head.startswith(b"Adobe")
        if segment.marker == _DNL:
            return jpeg_segments.frame_of(data, layout).height == 0
        return not (APP0 <= segment.marker <= APP15 or segment.marker == COM)

    tables = used_tables(data, layout)
    parts = [b"\xff\xd8"]
    for segment in filter(needed, layout.segments):
        if segment.marker == APP0:
            # Version, density; a JFIF segment may hold a thumbnail behind them.
            parts.append(b"\xff\xe0\0\x10" + data[segment.payload : segment.payload + 12].ljust(12, b"\0") + b"\0\0")
        elif segment.marker == APP14:
            body = data[segment.payload : min(segment.end, segment.payload + 12)]
            parts.append(b"\xff\xee" + (len(body) + 2).to_bytes(2, "big") + body)
        elif segment.start in tables:
            body = tables[segment.start]
            parts.append(bytes((0xFF, segment.marker)) + (len(body) + 2).to_bytes(2, "big") + body if body else b"")
        else:
            parts.append(data[segment.start : segment.scan_end])
    return b"".join((*parts, b"\xff\xd9"))


def _strip_png(data: bytes) -> bytes:
    parts = [png.SIGNATURE]
    paletted = False
    profiled = any(chunk.kind == b"iCCP" for chunk in png.chunks(data))
    for chunk in png.chunks(data):
        if chunk.end + 4 > len(data):
            # The picture decodes, so it is complete; what is cut off is metadata.
            break
        length = chunk.end - chunk.payload
        if chunk.kind == b"IHDR":
            paletted = data[chunk.payload + 9] == 3
        idle = chunk.kind == b"PLTE" and not paletted
        idle |= profiled and chunk.kind in _PNG_BESIDE_PROFILE
        if chunk.kind in _PNG_KEPT and not idle and length <= _PNG_LONGEST.get(chunk.kind, length):
            parts.append(data[chunk.start : chunk.end + 4])
    return b"".join((*parts, b"\0\0\0\0IEND\xaeB`\x82"))


def _strip_webp(data: bytes) -> bytes:
    parts = []
    for chunk in webp.chunks(data):
        if chunk.end > len(data):
            break
        if chunk.kind not in _WEBP_KEPT:
            continue
        body = data[chunk.payload : chunk.end]
        if chunk.kind == b"VP8X":
            body = bytes([body[0] & ~(webp.ICC_FLAG | webp.EXIF_FLAG | webp.XMP_FLAG)]) + body[1:]
        elif chunk.kind == b"ANMF":
            inner = webp.chunks(data, chunk.payload + 16, chunk.end)
            body = body[:16] + b"".join(
                _riff(part.kind, data[part.payload : part.end]) for part in inner if part.kind in _FRAME_KEPT
            )
        parts.append(_riff(chunk.kind, body))
    content = b"WEBP" + b"".join(parts)
    return b"RIFF" + len(content).to_bytes(4, "little") + content


def _riff(kind: bytes, body: bytes) -> bytes:
    return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) & 1)
