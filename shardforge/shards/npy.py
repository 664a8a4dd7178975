"""Arrays in NumPy's file format, as members of samples: plain numbers only, and no larger than they say."""

from __future__ import annotations

import io
import math
import tokenize
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

_HEADER = 10_000
"""Longest header that is read, in bytes; NumPy's own limit."""
_USUAL = 128
"""Length of the header that NumPy writes of arrays with a few dimensions."""


class BadArray(ValueError):
    """The bytes are no array that a sample may hold."""


def read_npy(payload: memoryview, *, copy: bool = True) -> npt.NDArray[Any]:
    """A plain array in NumPy's file format, never a pickled object; C-contiguous, in native byte order.

    Args:
        copy: False: a read-only view of the payload where its bytes are stored like that.

    Raises:
        BadArray: it is something else, or not as long as its header says.
    """
    layout = _layout(payload[:_USUAL].tobytes())
    if layout is None:
        layout = _parsed(bytes(payload[: _HEADER + 16]))
    if layout.end + layout.bytes != len(payload):
        found = len(payload) - layout.end
        raise BadArray(f"{found} bytes for an array of shape {layout.shape} and type {layout.dtype}")
    try:
        array = np.ndarray(layout.shape, layout.dtype, payload, layout.end, None, layout.order)
    except ValueError as error:
        # Sides that NumPy cannot hold, beside one of 0.
        raise BadArray(f"no valid array ({error})") from None
    if copy or not layout.plain:
        return np.array(array, layout.dtype.newbyteorder("="), order="C")
    return array


@dataclass(frozen=True)
class _Layout:
    """What the header of an array file says.

    Attributes:
        end: where the header ends, in bytes.
        bytes: of the array's content.
        plain: C order and native byte order.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    end: int
    bytes: int
    plain: bool


@lru_cache(maxsize=64)
def _layout(start: bytes) -> _Layout | None:
    """The layout of a file that begins like that, None if its header is longer. A dataset's arrays have few kinds of
    headers, and reading one takes longer than cropping a picture.

    Raises:
        BadArray: no file begins like that.
    """
    counted = 12 if start[6:7] == b"\x02" else 10
    complete = counted + int.from_bytes(start[8:counted], "little") <= _USUAL
    return _parsed(start) if complete or len(start) < _USUAL else None


def _parsed(start: bytes) -> _Layout:
    file = io.BytesIO(start)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise BadArray(f"an array file of version {version}")
        shape, fortran, dtype = readers[version](file, max_header_size=_HEADER)
    except BadArray:
        raise
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise BadArray(f"no valid array ({str(error).splitlines()[0]})") from None
    if dtype.kind not in "biuf" or any(side < 0 for side in shape):
        raise BadArray(f"an array of {dtype}, which is no plain number")
    order: Literal["C", "F"] = "F" if fortran else "C"
    plain = dtype.isnative and not (fortran and len(shape) > 1)
    return _Layout(shape, dtype, order, file.tell(), math.prod(shape) * dtype.itemsize, plain)
