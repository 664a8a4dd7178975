"""Opening files that somebody else may have replaced by something that is no file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

BUFFER = 2**20
"""Bytes that are read ahead."""


def open_regular(path: Path) -> IO[bytes]:
    """Opens a regular file for reading; a pipe or a device of that name neither blocks nor is read.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    return open(descriptor, "rb", buffering=BUFFER)
