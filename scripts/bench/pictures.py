"""The pictures to build from: made of the two photographs that scikit-learn ships, or a user's own."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import simplejpeg
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

SIZES = {"a": (4000, 3000), "b": (500, 375)}
"""Width and height of the pictures in a set."""
DISTINCT = {"a": 400, "b": 4000}
"""Different pictures in a set; a larger one holds them repeatedly, which takes no more room."""
_QUALITY = 90
_SEED = 20


def photographs() -> list[Pixels]:
    """uint8 [427, 640, 3], two of them."""
    from sklearn.datasets import load_sample_images

    return [np.asarray(image, np.uint8) for image in load_sample_images().images]


def compose(number: int, width: int, height: int, photos: list[Pixels]) -> Pixels:
    """Picture number so-and-so [height, width, 3]: photographs side by side at their own scale, in a random choice,
    mirrored at random, cut at a random place. A seeded function of its arguments."""
    draw = np.random.default_rng((_SEED, number, width, height))
    tall, wide = photos[0].shape[:2]
    rows, columns = 1 + -(-(height - 1) // tall), 1 + -(-(width - 1) // wide)
    if height <= tall and width <= wide:
        rows = columns = 1
    canvas = np.empty((rows * tall, columns * wide, 3), np.uint8)
    for row in range(rows):
        for column in range(columns):
            photo = photos[draw.integers(len(photos))][:: draw.choice((-1, 1)), :: draw.choice((-1, 1))]
            canvas[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide] = photo
    top = int(draw.integers(canvas.shape[0] - height + 1))
    left = int(draw.integers(canvas.shape[1] - width + 1))
    return np.ascontiguousarray(canvas[top : top + height, left : left + width])


def composed(name: str, count: int, cache: Path) -> Path:
    """A folder of ``count`` JPEGs (quality 90, 4:2:0) of a set, made on first use; up to :data:`DISTINCT` different
    ones."""
    folder = cache / "pictures" / f"{name}-{count}-{_SEED}"
    if folder.is_dir():
        return folder
    if count > DISTINCT[name]:
        originals = sorted(composed(name, DISTINCT[name], cache).iterdir())
        return _filled(folder, itertools.islice(itertools.cycle(originals), count))
    photos = photographs()

    def files() -> Iterator[bytes | Path]:
        seen: set[bytes] = set()
        for number in itertools.count():
            data = bytes(
                simplejpeg.encode_jpeg(compose(number, *SIZES[name], photos), _QUALITY, "RGB", "420", fastdct=False)
            )
            # Small crops of two photographs may coincide.
            if (digest := hashlib.sha256(data).digest()) not in seen:
                seen.add(digest)
                yield data

    return _filled(folder, itertools.islice(files(), count))


def own(source: Path, count: int | None, folder: Path) -> Path:
    """A flat folder with the JPEGs below ``source``, by name, at most ``count`` of them."""
    paths = sorted(path for path in source.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg") and path.is_file())
    folder.mkdir()
    for number, path in enumerate(paths[:count]):
        link(path, folder / f"{number:06d}.jpg")
    return folder


def link(path: Path, target: Path) -> None:
    """Gives a file a second name; where file systems forbid it, a copy."""
    try:
        os.link(path.resolve(), target)
    except OSError:
        shutil.copyfile(path, target)


def _filled(folder: Path, files: Iterator[bytes | Path]) -> Path:
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    making.mkdir(parents=True)
    for number, file in enumerate(files):
        target = making / f"{number:06d}.jpg"
        if isinstance(file, Path):
            link(file, target)
        else:
            target.write_bytes(file)
    making.rename(folder)
    return folder
