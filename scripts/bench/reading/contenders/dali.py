"""NVIDIA DALI on the CPU: a folder of classes, decoding and cropping in one operator, as documented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nvidia.dali import fn, pipeline_def, types

from scripts.bench.reading.contenders.imagefolder import write as write
from scripts.bench.reading.work import BATCH, CROP, RATIO, SCALE


@pipeline_def  # type: ignore[untyped-decorator]
def _pipeline(folder: str) -> tuple[Any, Any]:
    files, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="reader")
    crops = fn.decoders.image_random_crop(
        files, device="cpu", output_type=types.RGB, random_area=list(SCALE), random_aspect_ratio=list(RATIO)
    )
    resized = fn.resize(crops, resize_x=CROP, resize_y=CROP, interp_type=types.INTERP_LINEAR, antialias=False)
    return fn.flip(resized, horizontal=fn.random.coin_flip()), labels


@contextmanager
def _reader(data: Path, workers: int) -> Iterator[Any]:
    pipeline = _pipeline(str(data), batch_size=BATCH, num_threads=workers, device_id=None)
    pipeline.build()
    steps = pipeline.epoch_size("reader") // BATCH

    def epoch() -> Iterator[Any]:
        for _ in range(steps):
            images, labels = pipeline.run()
            yield images.as_array(), labels.as_array()

    yield epoch


READERS = {"dali": _reader}
