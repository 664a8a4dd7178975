"""Digests of pixel data as they are stored, to tell duplicates from other pictures at the same place."""

from __future__ import annotations

import hashlib
import io
import sys
import zipfile
import zlib

from shardforge.codecs.dicom.parse import parse_dicom
from shardforge.codecs.dicom.syntaxes import DEFLATED_DATASETS
from shardforge.errors import SampleError
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.zips import Archives

_BLOCK = 1 << 20
_ANY_TAG = (0x00080016,)


def pixel_digest(archives: Archives, header: Header, max_inflated: int) -> bytes | None:
    """SHA-256 of a file's transfer syntax and pixel data; None if they cannot be read.

    Equal digests mean equal pixels. The same pixels in another encoding have another digest.

    Args:
        max_inflated: bytes that a deflated dataset may have.
    """
    try:
        with archives.open(header.file.path) as file:
            deflated = header.transfer_syntax in DEFLATED_DATASETS
            tags = None if deflated else _ANY_TAG
            parsed = parse_dicom(file, tags=tags, max_inflated=max_inflated, size=header.file.size)
            if parsed.pixels is None:
                return None
            source = file if parsed.inflated is None else io.BytesIO(parsed.inflated)
            source.seek(parsed.pixels.start)
            digest = hashlib.sha256(parsed.transfer_syntax.encode() + b"\0")
            left = sys.maxsize if parsed.pixels.length is None else parsed.pixels.length
            while left > 0 and (block := source.read(min(left, _BLOCK))):
                digest.update(block)
                left -= len(block)
            return digest.digest()
    except (SampleError, OSError, EOFError, zipfile.BadZipFile, zlib.error):
        return None
