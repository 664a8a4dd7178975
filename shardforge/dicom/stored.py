"""Stored values: the bits that mean something, with their sign (PS3.5 8.1.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.dicom.facts import PixelFormat


def stored_dtype(pixel_format: PixelFormat) -> np.dtype[Any]:
    """The dtype of stored values: BitsAllocated wide (1 bit: uint8), signed by PixelRepresentation, or a float."""
    if pixel_format.kind != "int":
        return np.dtype(np.float32 if pixel_format.kind == "float" else np.float64)
    size = max(1, pixel_format.bits_allocated // 8)
    return np.dtype(f"{'i' if pixel_format.signed else 'u'}{size}")


def stored_values(cells: NDArray[Any], pixel_format: PixelFormat) -> NDArray[Any]:
    """Takes BitsStored bits that end at HighBit, and extends their sign; what stands above them is ignored.

    ``v = (cell >> (HighBit + 1 - BitsStored)) & (2^BitsStored - 1)``, less ``2^BitsStored`` where the format is
    signed and v is at least ``2^(BitsStored - 1)``.

    Args:
        cells: whole pixel cells, integers of BitsAllocated bits in native byte order.

    Returns:
        The same shape, dtype of :func:`stored_dtype`; a view where every bit counts.
    """
    target = stored_dtype(pixel_format)
    low = pixel_format.high_bit + 1 - pixel_format.bits_stored
    unsigned = cells.view(f"u{target.itemsize}")
    if low and pixel_format.bits_allocated > 1:
        unsigned = unsigned >> unsigned.dtype.type(low)
    return resign(unsigned, pixel_format.bits_stored, pixel_format)


def resign(values: NDArray[Any], bits: int, pixel_format: PixelFormat) -> NDArray[Any]:
    """Stored values from those of a codestream that has a precision and a sign of its own, or none.

    The pattern of its bits counts, up to BitsStored of them, read with the header's sign: JPEG, JPEG-LS and RLE know
    no sign, and JPEG 2000 streams may have another one than the header.

    Args:
        values: as decoded, integers.
        bits: precision of the codestream.

    Returns:
        The same shape, dtype of :func:`stored_dtype`; a view where every bit counts.
    """
    target = stored_dtype(pixel_format)
    width = target.itemsize * 8
    used = min(bits, pixel_format.bits_stored, width)
    same = values.dtype.itemsize == target.itemsize
    cells = values.view(f"u{target.itemsize}") if same else values.astype(f"u{target.itemsize}")
    if used == width:
        return cells.view(target)
    if not pixel_format.signed:
        return np.asarray(cells & cells.dtype.type((1 << used) - 1))
    moved = (cells << cells.dtype.type(width - used)).view(target)
    extended: NDArray[Any] = np.right_shift(moved, target.type(width - used), out=moved)
    return extended
