"""Later frames of an AVIF image sequence."""

from __future__ import annotations

import imagecodecs
import numpy as np

from shardforge.codecs.isobmff import arranged
from shardforge.codecs.samples import Header, Samples, attempt
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason


def decode(data: bytes, header: Header) -> Samples:
    """Decodes a sequence and takes frame ``header.frame`` of it, unturned.

    Raises:
        SampleError: ``truncated``, ``corrupt`` or ``unsupported``.
    """
    # Only under this brand the decoder reads the sequence, not the primary item.
    sequence = data[:8] + b"avis" + data[12:]
    frames = attempt(lambda: imagecodecs.avif_decode(sequence, numthreads=1))
    if frames.ndim != 4 and not (frames.ndim == 3 and frames.shape[2] > 4):
        raise SampleError(Reason.UNSUPPORTED, f"a sequence that decodes to {frames.shape}")
    if header.frame >= len(frames):
        raise SampleError(Reason.TRUNCATED, f"{len(frames)} frames, number {header.frame} is wanted")
    return arranged(np.ascontiguousarray(frames[header.frame]), data)
