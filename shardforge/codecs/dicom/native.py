"""Native (unencapsulated) pixel data: any frame's samples as a view where that is possible (PS3.5 8.1.1, 8.2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.dicom.parse import PixelElement
from shardforge.codecs.file_bytes import Bytes, view
from shardforge.dicom.facts import PixelFormat
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason


def frame_bits(pixel_format: PixelFormat, *, subsampled: bool = False) -> int:
    """Bits of one frame; frames follow each other without a gap, those of 1-bit images inside a byte.

    Args:
        subsampled: two pixels share their chrominance (YBR_FULL_422).
    """
    samples = 2 if subsampled else pixel_format.samples
    return pixel_format.rows * pixel_format.columns * samples * pixel_format.bits_allocated


def is_subsampled(pixel_format: PixelFormat) -> bool:
    """Whether two pixels share their chrominance in native pixel data (PS3.3 C.7.6.3.1.2)."""
    return pixel_format.photometric in ("YBR_FULL_422", "YBR_PARTIAL_422") and pixel_format.columns % 2 == 0


def has_excess(pixels: PixelElement, end: int, pixel_format: PixelFormat, frames: int) -> bool:
    """Whether the pixel data hold at least one whole frame more than the header counts; a pad byte is none."""
    bits = frame_bits(pixel_format, subsampled=is_subsampled(pixel_format))
    spare = _available(pixels, end) - -(-frames * bits // 8)
    return spare > 1 and spare * 8 >= bits


def _available(pixels: PixelElement, end: int) -> int:
    return max(0, min(pixels.length or 0, end - pixels.start))


def native_frame(
    data: Bytes, pixels: PixelElement, pixel_format: PixelFormat, frame: int, frames: int, *, salvage: bool
) -> tuple[NDArray[Any], int]:
    """The cells of one frame, before BitsStored is looked at.

    Args:
        frames: that the header counts; tells apart two ways of writing YBR_FULL_422.
        salvage: return a frame of which whole rows are there, with what is missing as zeros; not for planar colours.

    Returns:
        [H, W] or [H, W, 3] in native byte order, read-only where it is a view into ``data``; and the rows that are
        there.

    Raises:
        SampleError: ``truncated``.
    """
    available = _available(pixels, len(data))
    subsampled = is_subsampled(pixel_format)
    if subsampled and available * 8 >= frame_bits(pixel_format) * frames:
        # Some writers repeat the chrominance and keep the name.
        subsampled = False
    bits = frame_bits(pixel_format, subsampled=subsampled)
    first, last = frame * bits // 8, -(-(frame + 1) * bits // 8)
    have = max(0, min(available, last) - first)
    rows = pixel_format.rows
    if have < last - first:
        rows = have * 8 * pixel_format.rows // bits
        if not salvage or rows == 0 or pixel_format.planar:
            raise SampleError(Reason.TRUNCATED, f"{available} bytes of pixel data, frame {frame} ends at {last}")
    content = _bytes(data, pixels.start + available, first, last, pixels, pixel_format)
    return arrange(content, pixel_format, little=pixels.little, skip=frame * bits % 8, subsampled=subsampled), rows


def _bytes(
    data: Bytes, end: int, first: int, last: int, pixels: PixelElement, pixel_format: PixelFormat
) -> NDArray[np.uint8]:
    """Bytes from first to last of the value, zeros where there are none. ``end``: where it ends in the file."""
    start = pixels.start
    if pixel_format.bits_allocated <= 8 and not pixels.little and pixels.vr == "OW":
        # Big endian words of two cells each.
        words = view(data, start + first // 2 * 2, min(end, start + (last + 1) // 2 * 2))
        swapped = np.frombuffer(words[: len(words) // 2 * 2], np.uint16).byteswap().view(np.uint8)
        found = swapped[first % 2 :][: last - first]
    else:
        found = np.frombuffer(view(data, start + first, min(end, start + last)), np.uint8)
    return found if len(found) == last - first else np.pad(found, (0, last - first - len(found)))


def arrange(
    content: NDArray[np.uint8] | bytes,
    pixel_format: PixelFormat,
    *,
    little: bool = True,
    skip: int = 0,
    subsampled: bool = False,
) -> NDArray[Any]:
    """The cells of a frame from its bytes, at least as many as it needs.

    Args:
        little: byte order.
        skip: bits before the first pixel of 1-bit images.
        subsampled: two luminances, then their common chrominance.
    """
    shape = (pixel_format.rows, pixel_format.columns)
    count = shape[0] * shape[1]
    width = pixel_format.bits_allocated
    if width == 1:
        packed = np.frombuffer(content, np.uint8)
        bits = np.unpackbits(packed, count=skip + count * pixel_format.samples, bitorder="little")[skip:]
        return bits.reshape(shape if pixel_format.samples == 1 else (*shape, 3))
    kind = "u" if pixel_format.kind == "int" else "f"
    stored = np.dtype(f"{'<' if little else '>'}{kind}{width // 8}")
    if subsampled:
        pairs = np.frombuffer(content, stored, count * 2).astype(stored.newbyteorder("="), copy=False)
        return _repeat_chrominance(pairs.reshape(shape[0], -1, 4))
    cells = np.frombuffer(content, stored, count * pixel_format.samples)
    if not stored.isnative:
        cells = cells.astype(stored.newbyteorder("="))
    if pixel_format.samples == 1:
        return cells.reshape(shape)
    if pixel_format.planar:
        return np.ascontiguousarray(cells.reshape(3, *shape).transpose(1, 2, 0))
    return cells.reshape(*shape, 3)


def _repeat_chrominance(pairs: NDArray[Any]) -> NDArray[Any]:
    """[H, W / 2, (Y1, Y2, Cb, Cr)] → [H, W, (Y, Cb, Cr)]."""
    rows, half = pairs.shape[:2]
    full = np.empty((rows, half, 2, 3), pairs.dtype)
    full[..., 0] = pairs[..., :2]
    full[..., 1:] = pairs[:, :, None, 2:]
    return full.reshape(rows, half * 2, 3)
