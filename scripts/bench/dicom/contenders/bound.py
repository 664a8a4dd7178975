"""The codec bound: a plain pool that parses, decodes, resizes, looks levels up and encodes, and does nothing else.

The same pixel work as the build, with the same resampler and encoders: modality values resized with Lanczos in
float32, rounded, a table of every int16 for each window. Nothing is checked, counted, hashed or written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image
from pydicom.encaps import get_frame

from scripts.bench.dicom.files import SETS
from scripts.bench.dicom.work import CHECKED, QUALITY, Task, pooled, sources
from shardforge.codecs.encode import encode
from shardforge.dicom.facts import Window
from shardforge.dicom.voi import level_table

_TOTAL = "bytes"
_tables: dict[tuple[float, float], NDArray[np.uint8]] = {}


def build(source: Path, out: Path, workers: int, task: Task, *, start: str | None = None) -> None:
    (out / _TOTAL).write_text(str(sum(pooled(_size, source, workers, task, start=start))))


def stored(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    return {path.stem: _make(path, task) for path in sources(source)[:CHECKED]}


def output_bytes(out: Path) -> int:
    return int((out / _TOTAL).read_text())


def _size(path: Path, task: Task) -> int:
    return len(_make(path, task))


def _make(path: Path, task: Task) -> bytes:
    dataset = pydicom.dcmread(path)
    stored_values = _decoded(dataset)
    values = stored_values.astype(np.int16)
    values += np.int16(dataset.RescaleIntercept)
    height, width = task.fitted(*values.shape)
    picture = Image.fromarray(values.astype(np.float32)).resize((width, height), Image.Resampling.LANCZOS)
    index = np.rint(np.asarray(picture)).astype(np.int16).view(np.uint16)
    pixels = np.empty((height, width, len(task.windows)), np.uint8)
    for channel, window in enumerate(task.windows):
        pixels[..., channel] = _table(window).take(index)
    return encode(pixels, format=task.format, quality=QUALITY, subsampling="420")  # type: ignore[arg-type]


def _table(window: tuple[float, float]) -> NDArray[np.uint8]:
    if window not in _tables:
        _tables[window] = level_table(Window(*window))
    return _tables[window]


def _decoded(dataset: pydicom.Dataset) -> NDArray[Any]:
    shape = (dataset.Rows, dataset.Columns)
    syntax = dataset.file_meta.TransferSyntaxUID
    if syntax == SETS["native"].syntax:
        return np.frombuffer(dataset.PixelData, np.uint16).reshape(shape)
    frame = get_frame(dataset.PixelData, 0, number_of_frames=1)
    if syntax == SETS["rle"].syntax:
        return np.frombuffer(imagecodecs.dicomrle_decode(frame, np.dtype(np.uint16)), np.uint16).reshape(shape)
    if syntax == SETS["jpegll"].syntax:
        return np.asarray(imagecodecs.jpeg8_decode(frame))
    if syntax == SETS["jpegls"].syntax:
        return np.asarray(imagecodecs.jpegls_decode(frame))
    return np.asarray(imagecodecs.jpeg2k_decode(frame, numthreads=1))
