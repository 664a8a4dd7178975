"""The codec bound: a plain pool that reads, decodes, resizes and encodes, and does nothing else.

The same pixel work as the build: a JPEG is decoded at 1/8, 1/4 or 1/2 where that leaves 2.25 times the target,
Lanczos does the rest. Nothing is checked, counted, hashed or written.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Iterator
from functools import partial
from itertools import islice
from multiprocessing.context import BaseContext
from pathlib import Path

import numpy as np
import simplejpeg
from PIL import Image

from scripts.bench.work import CHECKED, QUALITY, fitted, sources

_MARGIN = 2.25
_CHUNK = 4
SOURCES, BYTES = "sources", "bytes"


def build(source: Path, out: Path, workers: int, *, reduce: bool = True, context: BaseContext | None = None) -> None:
    with (context or multiprocessing.get_context()).Pool(workers) as pool:
        sizes = pool.imap_unordered(partial(_size, reduce=reduce), sources(source), _CHUNK)
        total = sum(sizes)
    (out / BYTES).write_text(str(total))
    (out / SOURCES).write_text(str(source))


def stored(out: Path, *, reduce: bool = True) -> Iterator[tuple[str, bytes]]:
    for path in islice(sources(Path((out / SOURCES).read_text())), CHECKED):
        yield path.stem, make(path, reduce)


def output_bytes(out: Path) -> int:
    return int((out / BYTES).read_text())


def _size(path: Path, *, reduce: bool) -> int:
    return len(make(path, reduce))


def make(path: Path, reduce: bool) -> bytes:
    data = path.read_bytes()
    height, width, *_ = simplejpeg.decode_jpeg_header(data)
    size = fitted(width, height)
    factor = _reduction(width, height, size) if reduce else 1
    pixels = simplejpeg.decode_jpeg(data, "RGB", min_height=-(-height // factor), min_width=-(-width // factor))
    resized = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, (0, 0, width / factor, height / factor))
    return bytes(simplejpeg.encode_jpeg(np.asarray(resized), QUALITY, "RGB", "420", fastdct=False))


def _reduction(width: int, height: int, size: tuple[int, int]) -> int:
    enough = math.ceil(_MARGIN * size[0]), math.ceil(_MARGIN * size[1])
    return next((k for k in (8, 4, 2) if width >= k * enough[0] and height >= k * enough[1]), 1)
