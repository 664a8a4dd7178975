"""Arrays in NumPy's file format, as members of samples: plain numbers only, and no larger than they say."""

from __future__ import annotations

import io
import math
import tokenize
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_HEADER = 10_000
"""Longest header that is read, in bytes; NumPy's own limit."""


class BadArray(ValueError):
    """The bytes are no array that a sample may hold."""


def read_npy(payload: memoryview, *, copy: bool = True) -> npt.NDArray[Any]:
    """A plain array in NumPy's file format, never a pickled object; C-contiguous, in native byte order.

    Args:
        copy: False: a read-only view of the payload where its bytes are stored like that.

    Raises:
        BadArray: it is something else, or not as long as its header says.
    """
    counted = 12 if payload[6:7].tolist() == [2] else 10
    length = counted + int.from_bytes(payload[8:counted], "little")
    shape, fortran, dtype, end = _header(bytes(payload[: min(length, _HEADER + 16)]))
    count, body = math.prod(shape), payload[end:]
    if dtype.kind not in "biuf" or any(side < 0 for side in shape):
        raise BadArray(f"an array of {dtype}, which is no plain number")
    if count * dtype.itemsize != len(body):
        raise BadArray(f"{len(body)} bytes for an array of shape {shape} and type {dtype}")
    array = np.frombuffer(body, dtype, count).reshape(shape, order="F" if fortran else "C")
    if copy or not array.flags.c_contiguous or not dtype.isnative:
        return np.array(array, dtype.newbyteorder("="), order="C")
    return array


@lru_cache(maxsize=64)
def _header(start: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, order, type and where the body begins, from the file's first bytes: a dataset's arrays have few kinds of
    headers, and reading one takes longer than reading a picture."""
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
    return shape, fortran, dtype, file.tell()
