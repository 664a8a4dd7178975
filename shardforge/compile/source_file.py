"""Reads the files that an item is made of."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason


def read_source(root: Path, path: bytes, planned_size: int, limits: Limits) -> bytes:
    """The bytes of a regular file below ``root``, never more than the limit.

    Raises:
        SampleError: ``missing_file``, ``unreadable``, ``changed`` or ``over_budget``.
    """
    try:
        # O_NONBLOCK: a pipe that has taken the file's place must not hang the build.
        descriptor = os.open(root / os.fsdecode(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SampleError(Reason.CHANGED, "no longer a regular file")
            if status.st_size > limits.source_bytes:
                raise SampleError(Reason.OVER_BUDGET, f"{status.st_size} bytes")
            # A buffer of the size asked for is allocated at once; one byte more tells whether the file has grown.
            data = file.read(status.st_size + 1)
    except FileNotFoundError as error:
        raise SampleError(Reason.MISSING_FILE, str(error)) from None
    except OSError as error:
        raise SampleError(Reason.UNREADABLE, str(error)) from None
    if len(data) != planned_size:
        raise SampleError(Reason.CHANGED, f"{len(data)} bytes where {planned_size} were planned")
    return data
