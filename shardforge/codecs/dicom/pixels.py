"""One frame of a DICOM file → its stored values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.dicom.decoders import CODECS, decode_codestream, inflate_frame
from shardforge.codecs.dicom.fragments import join
from shardforge.codecs.dicom.native import arrange, frame_bits, native_frame
from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.dicom.rle import rle_frame
from shardforge.codecs.dicom.syntaxes import sniff_fragment
from shardforge.dicom.facts import PixelFormat
from shardforge.dicom.stored import resign, stored_values
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class StoredFrame:
    """The stored values of a frame.

    Attributes:
        values: [H, W] or [H, W, 3], BitsAllocated wide (1-bit: uint8 of 0 and 1), signed by PixelRepresentation, or
            float32 or float64. Often a read-only view of the file's bytes.
        photometric: of the values: the header's PhotometricInterpretation, or ``RGB`` where a codec has converted to
            it; YBR_FULL_422 has its chrominance repeated.
        decoder: library, its version, and the codec.
        flags: what was noticed while decoding.
        valid_rows: rows that the file has; less than H in a salvaged frame.
    """

    values: NDArray[Any]
    photometric: str
    decoder: str
    flags: tuple[Flag, ...]
    valid_rows: int


def decode_frame(file: DicomFile, frame: int, *, salvage: bool = False) -> StoredFrame:
    """Decodes one frame.

    Args:
        frame: from 0, below ``file.frames``.
        salvage: accept native pixel data that end inside the frame: whole rows are kept, the others take the lowest
            value of those (black in colour images), and the frame is flagged ``salvaged``.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``unsupported``, ``bad_header``.
        IndexError: there is no such frame.
    """
    if not 0 <= frame < file.frames:
        raise IndexError(f"frame {frame} of {file.frames}")
    if file.fragments is None:
        return _native(file, frame, salvage=salvage)
    if frame >= len(file.fragments):
        raise SampleError(Reason.TRUNCATED, f"{len(file.fragments)} frames in the data, {file.frames} in the header")
    if file.format.kind != "int":
        raise SampleError(Reason.UNSUPPORTED, "encapsulated floating point pixel data")
    stream = join(file.data, file.fragments[frame])
    return decode_stream(stream, file)


def decode_stream(stream: bytes, file: DicomFile) -> StoredFrame:
    """Decodes the compressed bytes of one frame.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``unsupported``, ``bad_header``.
    """
    of = file.format
    # RLE and deflated frames have no signature that could not be chance.
    codec = CODECS.get(file.transfer_syntax)
    if codec in ("rle", "deflate") and _is_jpeg_family(stream):
        codec = None
    if codec == "rle":
        cells, decoder, flags = rle_frame(stream, of)
        return StoredFrame(stored_values(cells, of), of.photometric, decoder, flags, of.rows)
    if codec == "deflate":
        content, decoder = inflate_frame(stream, -(-frame_bits(of) // 8))
        cells = arrange(content, of)
        return StoredFrame(stored_values(cells, of), of.photometric, decoder, (), of.rows)
    decoded = decode_codestream(stream, file.transfer_syntax, of)
    values = resign(decoded.values, decoded.bits, of)
    return StoredFrame(values, decoded.colours or of.photometric, decoded.decoder, decoded.flags, of.rows)


def _is_jpeg_family(stream: bytes) -> bool:
    found = sniff_fragment(stream[:1024])
    return found is not None and CODECS[found] != "rle"


def _native(file: DicomFile, frame: int, *, salvage: bool) -> StoredFrame:
    of = file.format
    cells, rows = native_frame(file.data, file.pixels, of, frame, file.frames, salvage=salvage)
    values = cells if of.kind != "int" else stored_values(cells, of)
    done = StoredFrame(values, of.photometric, f"numpy {np.__version__}", (), rows)
    return done if rows == of.rows else _salvaged(done, of)


def _salvaged(frame: StoredFrame, of: PixelFormat) -> StoredFrame:
    values = frame.values.copy()
    values[frame.valid_rows :] = _lowest(values[: frame.valid_rows], of)
    return replace(frame, values=values, flags=(Flag.SALVAGED,))


def _lowest(values: NDArray[Any], of: PixelFormat) -> Any:
    if of.samples == 1:
        return values.min()
    middle = 1 << (of.bits_stored - 1)
    return (0, middle, middle) if of.photometric.startswith("YBR") else 0
