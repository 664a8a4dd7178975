"""Look-up tables as files have them (PS3.3 C.11.1.1, C.11.2.1.1, C.7.6.3.1.5 and C.7.9.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from shardforge.codecs.dicom.values import content
from shardforge.dicom.facts import Lut, Palette
from shardforge.dicom.palette import expand_segments

_DESCRIPTOR, _DATA = 0x00283002, 0x00283006
_RED, _GREEN, _BLUE = 1, 2, 3


def read_lut(item: Dataset, *, signed: bool) -> Lut | None:
    """The table of an item of a Modality or VOI LUT Sequence; None if it is unusable.

    Args:
        signed: the inputs are, so the first one is written as a signed number, whatever its VR.
    """
    return _lut(item, _DESCRIPTOR, _DATA, signed=signed)


def read_palette(dataset: Dataset, *, signed: bool) -> Palette | None:
    """The palette of a PALETTE COLOR image, segmented or plain; None if it is unusable."""
    red, green, blue = (_channel(dataset, number, signed=signed) for number in (_RED, _GREEN, _BLUE))
    return None if red is None or green is None or blue is None else Palette(red, green, blue)


def _channel(dataset: Dataset, number: int, *, signed: bool) -> Lut | None:
    descriptor = 0x00281100 + number
    plain = _lut(dataset, descriptor, 0x00281200 + number, signed=signed)
    return plain or _lut(dataset, descriptor, 0x00281220 + number, signed=signed, segmented=True)


def _lut(dataset: Dataset, descriptor: int, data: int, *, signed: bool, segmented: bool = False) -> Lut | None:
    words = _words(dataset, descriptor)
    found = content(dataset, data)
    if words is None or len(words) < 3 or found is None:
        return None
    entries, first, bits = int(words[0]) or 65536, int(words[1]), int(words[2])
    if not 1 <= bits <= 16:
        return None
    if signed and first >= 0x8000:
        first -= 0x10000
    if segmented:
        values = _words(dataset, data) if bits > 8 else _bytes(*found)
        table = None if values is None else expand_segments(values, entries, bits)
    else:
        table = _entries(*found, entries, bits)
    return None if table is None else Lut(first, bits, table)


def _words(dataset: Dataset, tag: int) -> NDArray[np.uint16] | None:
    found = content(dataset, tag)
    if found is None:
        return None
    data, little, _ = found
    return np.frombuffer(data[: len(data) // 2 * 2], "<u2" if little else ">u2").astype(np.uint16)


def _bytes(data: bytes, little: bool, vr: str | None) -> NDArray[np.uint16]:
    values = np.frombuffer(data, np.uint8)
    if not little and vr != "OB" and len(values) % 2 == 0:
        # Two entries a word, the first one in its low byte.
        values = values.reshape(-1, 2)[:, ::-1].ravel()
    return values.astype(np.uint16)


def _entries(data: bytes, little: bool, vr: str | None, entries: int, bits: int) -> NDArray[np.uint16] | None:
    """One entry a word, or, for 8 bits, two: the length tells (PS3.3 C.11.1.1.1)."""
    if len(data) >= 2 * entries:
        return np.frombuffer(data[: 2 * entries], "<u2" if little else ">u2").astype(np.uint16)
    if bits <= 8 and len(data) >= entries:
        return _bytes(data, little, vr)[:entries]
    return None
