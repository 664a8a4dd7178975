"""Arrays in NumPy's file format, as members of samples: plain numbers only, and no larger than they say."""

from __future__ import annotations

import io
import math
import tokenize
from typing import Any

import numpy as np
import numpy.typing as npt

_HEADER = 10_000
"""Longest header that is read, in bytes; NumPy's own limit."""


class BadArray(ValueError):
    """The bytes are no array that a sample may hold."""


def read_npy(payload: memoryview) -> npt.NDArray[Any]:
    """A plain array in NumPy's file format, never a pickled object; a copy in native byte order.

    Raises:
        BadArray: it is something else, or not as long as its header says.
    """
    start = io.BytesIO(payload[: _HEADER + 16])
    try:
        version = np.lib.format.read_magic(start)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise BadArray(f"an array file of version {version}")
        shape, fortran, dtype = readers[version](start, max_header_size=_HEADER)
    except BadArray:
        raise
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise BadArray(f"no valid array ({str(error).splitlines()[0]})") from None
    count, body = math.prod(shape), payload[start.tell() :]
    if dtype.kind not in "biuf" or any(side < 0 for side in shape):
        raise BadArray(f"an array of {dtype}, which is no plain number")
    if count * dtype.itemsize != len(body):
        raise BadArray(f"{len(body)} bytes for an array of shape {shape} and type {dtype}")
    array = np.frombuffer(body, dtype, count).reshape(shape, order="F" if fortran else "C")
    return np.array(array, dtype.newbyteorder("="), order="C")
