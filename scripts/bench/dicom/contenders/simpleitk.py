"""SimpleITK reads, decodes and rescales, NumPy clips, Pillow resizes and writes files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import SimpleITK
from PIL import Image

from scripts.bench.dicom.work import QUALITY, Task, found, pooled


def build(source: Path, out: Path, workers: int, task: Task) -> None:
    pooled(_make, source, workers, out, task)


def stored(source: Path, out: Path, task: Task) -> dict[str, bytes]:
    return found(source, out, task)


def _make(path: Path, out: Path, task: Task) -> None:
    # A pool's processes share the processors already.
    SimpleITK.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    values = SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(path)))[0]
    channels = []
    for center, width in task.windows:
        low, high = center - width / 2, center + width / 2
        channels.append(((np.clip(values, low, high) - low) / (high - low) * 255).astype(np.uint8))
    height, width = task.fitted(*values.shape)
    picture = Image.fromarray(channels[0] if len(channels) == 1 else np.stack(channels, axis=2))
    picture.resize((width, height), Image.Resampling.LANCZOS).save(
        out / f"{path.stem}.{task.format}", quality=QUALITY
    )
