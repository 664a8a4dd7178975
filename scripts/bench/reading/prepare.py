"""What is read: the pictures, and every contender's own format of them, made once under the cache."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path

import cv2
import numpy as np
import simplejpeg

from scripts.bench.contenders.bound import make
from scripts.bench.launch import answer_of
from scripts.bench.pictures import composed
from scripts.bench.reading.contestants import Contender
from scripts.bench.reading.work import SQUARE
from scripts.bench.work import sources

ARRAYS = 4000
"""Pictures that are also stored as arrays, at most."""
SMALL = 1024
"""Pictures of the set on which memory is watched."""


def pictures(count: int, cache: Path) -> Path:
    """A folder of ``count`` photographs: JPEGs (short side 256, quality 95, 4:2:0). Up to 4 000 are different."""

    def fill(folder: Path) -> None:
        originals = sources(composed("b", count, cache))
        with Pool() as pool:
            for number, data in enumerate(pool.imap(_made, originals, 16)):
                (folder / f"{number:06d}.jpg").write_bytes(data)

    return _once(cache / "reading" / str(count) / "pictures", fill)


def arrays(folder: Path) -> Path:
    """A folder beside that of the pictures with the first of them as arrays (uint8 [256, 256, 3], ``.npy``)."""

    def fill(target: Path) -> None:
        for path in sources(folder)[:ARRAYS]:
            (target / f"{path.stem}.npy").write_bytes(_array(path.read_bytes()))

    return _once(folder.with_name("arrays"), fill)


def some(folder: Path, count: int, name: str) -> Path:
    """A folder with the first so many JPEGs of another, beside it."""

    def fill(target: Path) -> None:
        for path in sources(folder)[:count]:
            os.link(path, target / path.name)

    return _once(folder.with_name(name), fill)


def written(contender: Contender, python: Path, folder: Path, **how: int) -> Path:
    """The pictures of ``folder`` in the contender's format, beside it.

    Raises:
        MissingError: it cannot write them.
    """
    name = "-".join([contender.module, contender.payload, folder.name, *map(str, how.values())])

    def fill(target: Path) -> None:
        module = "scripts.bench.reading.child"
        words = ["write", contender.module, contender.payload, folder, target, *how.values()]
        answer_of(python, module, words)

    return _once(folder.with_name(name), fill)


def _once(folder: Path, fill: Callable[[Path], None]) -> Path:
    if folder.is_dir():
        return folder
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    try:
        fill(making)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return folder


def _made(path: Path) -> bytes:
    return make(path, reduce=True)


def _array(data: bytes) -> bytes:
    pixels = simplejpeg.decode_jpeg(data)
    file = io.BytesIO()
    np.save(file, cv2.resize(pixels, (SQUARE, SQUARE), interpolation=cv2.INTER_AREA))
    return file.getvalue()
