"""Pixel statistics of images that are only indexed: each is decoded once, by the decoders of the build."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Literal, cast

import numpy as np

from shardforge.codecs.decode import decode
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards import moments, statistics
from shardforge.shards.catalogue import Reason
from shardforge.shards.npy import BadArray, read_npy
from shardforge.shards.regular import open_regular
from shardforge.shards.tar import Extent

_WHITE = (255, 255, 255)


class PixelCounts:
    """Counts the pixels of a split.

    Args:
        form: of the image field: ``jpg``, ``png``, ``webp`` or ``npy``.
        channels, depth: of the images.

    Attributes:
        histogram: counts so far, [channels, 256] or wider for 16 bits.
    """

    def __init__(self, form: str, channels: int, depth: int, limits: Limits) -> None:
        self._form, self._channels, self._depth, self._limits = form, channels, depth, limits
        self.histogram = np.zeros((channels, statistics.width(depth)), np.int64)
        self._file: IO[bytes] | None = None

    def open(self, tar: Path) -> None:
        """The next images lie in this tar."""
        self.close()
        self._file = open_regular(tar)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, extent: Extent) -> None:
        """Counts an image.

        Raises:
            SampleError: it cannot be decoded.
        """
        assert self._file is not None
        self._file.seek(extent.offset)
        pixels = self._pixels(self._file.read(extent.size))
        if pixels.dtype == np.uint16 and self._depth == 16:
            self.histogram += moments.tally(pixels)
        elif pixels.dtype == np.uint8 and self._depth == 8:
            for channel in range(self._channels):
                self.histogram[channel] += np.bincount(pixels[:, :, channel].ravel(), minlength=statistics.LEVELS)

    def _pixels(self, payload: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
        if self._form == "npy":
            try:
                array = read_npy(memoryview(payload))
            except BadArray as error:
                raise SampleError(Reason.CORRUPT, str(error)) from None
            return array[..., None] if array.ndim == 2 else array
        return decode(
            payload,
            channels=cast(Literal[1, 3], self._channels),
            background=_WHITE,
            limits=self._limits,
            depth=cast(Literal[8, 16], self._depth),
        ).pixels
