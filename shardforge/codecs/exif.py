"""The one EXIF value that matters here: which way is up."""

from __future__ import annotations

from shardforge.codecs.tiff_tags import BadTagsError, directories

ORIENTATION = 0x0112


def exif_orientation(exif: bytes) -> tuple[int | None, bool]:
    """Reads tag 0x0112 of an EXIF block (EXIF 2.32, 4.6.4) and nothing else; never raises.

    Args:
        exif: the block, with or without the leading ``Exif\\0\\0``.

    Returns:
        The orientation 1..8, or None if none is declared (0 means the same); and whether the block could be read. A
        value over 8 counts as unreadable.
    """
    if exif[:6] in (b"Exif\0\0", b"Exif\0\xff"):
        exif = exif[6:]
    try:
        first = next(directories(exif), None)
        if first is None or ORIENTATION not in first.tags:
            return None, first is not None
        value = first.integer(ORIENTATION, 0)
    except BadTagsError:
        return None, False
    return (value or None, True) if 0 <= value <= 8 else (None, False)
