"""Tars as other people's tools write them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from tests.datasets import encode, picture

Member = tuple[str, bytes]


def write_tar(path: Path, members: Iterable[Member], format: int = tarfile.USTAR_FORMAT) -> Path:
    """Members in this very order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=format) as tar:
        for name, payload in members:
            info = tarfile.TarInfo(name)
            info.size = len(payload)
            tar.addfile(info, io.BytesIO(payload))
    return path


def sample(key: str, number: int, *, form: str = "png", label: object | None = None) -> list[Member]:
    """An image and a class; picture ``number`` of :mod:`tests.datasets`."""
    text = str(number % 4 if label is None else label).encode()
    return [(f"{key}.{form}", encode(picture(number), form)), (f"{key}.cls", text)]


def samples(numbers: Iterable[int]) -> list[Member]:
    return [member for number in numbers for member in sample(f"{number:04d}", number)]
