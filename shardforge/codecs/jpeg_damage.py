"""How much of a JPEG picture its damaged data still reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shardforge.codecs.jpeg_segments import SOS, walk
from shardforge.codecs.samples import Array

_FILLER = bytes(range(1, 255))
_BLOCK = 16
"""Pixels a side of the largest usual unit of coding."""


def reaches_the_end(data: bytes, decode: Callable[[bytes], Array], reduction: int) -> bool:
    """Whether decoding uses up no more data than there are, but for the last unit of coding.

    A decoder that runs out of data leaves the rest of the picture grey. With further bytes behind each scan it goes
    on with those instead: what then looks different is what is missing. Damage in the midst of the data often shifts
    their end by a part of a unit, so that one such unit (16 x 16 pixels) may differ.

    Args:
        data: a whole file that decodes, with complaints.
        decode: a decoder that tolerates them.
        reduction: by how much it reduces.
    """
    parts = [b"\xff\xd8"]
    for segment in walk(data, whole=True).segments:
        parts.append(data[segment.start : segment.scan_end])
        if segment.marker == SOS:
            parts.append(_FILLER * ((segment.scan_end - segment.end) // len(_FILLER) + 1))
    filled = b"".join((*parts, b"\xff\xd9"))
    different = (decode(data) != decode(filled)).any(axis=2)
    # Interpolated chroma reaches one pixel further on each side.
    return int(np.count_nonzero(different)) <= (_BLOCK // reduction + 2) ** 2
