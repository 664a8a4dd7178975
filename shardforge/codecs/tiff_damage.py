"""Damage inside the strips and tiles of a TIFF that its decoder passes over.

Of JPEG data (TIFF Technical Note 2) it drops what the JPEG library complains about, and leaves grey or displaced
blocks; of Deflate data it does not compare the checksum. Both are looked at again, strip by strip. LZMA checks
itself; LZW, PackBits, CCITT and Zstandard data carry nothing that would tell.
"""

from __future__ import annotations

import zlib

from shardforge.codecs import jpeg
from shardforge.codecs.tiff_tags import Directory
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_WIDTH, _HEIGHT, _COMPRESSION = 256, 257, 259
_STRIP_OFFSETS, _STRIP_SIZES, _TILE_WIDTH, _TILE_HEIGHT, _TILE_OFFSETS, _TILE_SIZES = 273, 279, 322, 323, 324, 325
_JPEG_TABLES = 347
_JPEG = 7
_DEFLATE = (8, 32946)
_BLOCK = 64
"""Pixels a side by which a coded strip may exceed the picture: the largest unit of coding, with room."""
_STEP = 1 << 20


def check_strips(page: Directory) -> tuple[Flag, ...]:
    """Looks for damage in a page that the decoder has accepted.

    Returns:
        What was noticed in JPEG strips that are kept all the same, as for JPEG files.

    Raises:
        SampleError: ``corrupt`` or ``truncated``; ``unsupported`` for JPEG data that cannot be checked.
        BadTagsError: the directory contradicts itself.
    """
    compression = page.integer(_COMPRESSION, 1)
    if compression == _JPEG:
        found = [flag for number, strip in enumerate(_strips(page)) for flag in _check_jpeg(page, number, strip)]
        return tuple(dict.fromkeys(found))
    if compression in _DEFLATE:
        for number, strip in enumerate(_strips(page)):
            _check_deflate(number, strip)
    return ()


def _strips(page: Directory) -> list[bytes]:
    offsets = page.integers(_STRIP_OFFSETS) or page.integers(_TILE_OFFSETS)
    sizes = page.integers(_STRIP_SIZES) or page.integers(_TILE_SIZES)
    return [page.data[at : at + size] for at, size in zip(offsets, sizes, strict=False) if size]


def _check_jpeg(page: Directory, number: int, strip: bytes) -> tuple[Flag, ...]:
    tables = page.raw(_JPEG_TABLES)
    whole = tables.removesuffix(b"\xff\xd9") + strip[2:] if tables else strip
    try:
        if not strip.startswith(b"\xff\xd8"):
            raise SampleError(Reason.CORRUPT, "no JPEG data")
        header = jpeg.read_header(whole)
        width, height = page.integer(_WIDTH, 0), page.integer(_HEIGHT, 0)
        most_wide = max(width, page.integer(_TILE_WIDTH, 0)) + _BLOCK
        most_high = max(height, page.integer(_TILE_HEIGHT, 0)) + _BLOCK
        if header.width > most_wide or header.height > most_high:
            raise SampleError(Reason.CORRUPT, f"{header.width} x {header.height} in a picture of {width} x {height}")
        flags = jpeg.decode(whole, header).flags
    except SampleError as error:
        raise SampleError(error.reason, f"strip or tile {number}: {error.detail}") from None
    return tuple(flag for flag in flags if flag is not Flag.CMYK_ASSUMED_INVERTED)


def _check_deflate(number: int, strip: bytes) -> None:
    stream, waiting = zlib.decompressobj(), strip
    try:
        while waiting and not stream.eof:
            stream.decompress(waiting, _STEP)
            waiting = stream.unconsumed_tail
    except zlib.error as error:
        raise SampleError(Reason.CORRUPT, f"strip or tile {number}: {error}") from None
    if not stream.eof:
        raise SampleError(Reason.TRUNCATED, f"strip or tile {number}: its data end early")
