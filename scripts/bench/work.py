"""What every contender of the build benchmark has to do with a picture."""

from __future__ import annotations

import io
from pathlib import Path

SIZE = 256
"""Short side of the result, in pixels."""
QUALITY = 95
CHECKED = 50
"""Pictures of a set whose quality is measured: the first ones."""


def fitted(width: int, height: int) -> tuple[int, int]:
    """Width and height with the short side at :data:`SIZE`, the other rounded half up; never enlarged."""
    short = min(width, height)
    if short <= SIZE:
        return width, height
    return (2 * width * SIZE + short) // (2 * short), (2 * height * SIZE + short) // (2 * short)


def sources(folder: Path) -> list[Path]:
    """The pictures of a set, in order."""
    return sorted(folder.glob("*.jpg"))


def pillow_jpeg(path: Path) -> tuple[str, bytes]:
    """The usual way: open, convert, resize and save with Pillow. Returns the picture's name and its JPEG."""
    from PIL import Image

    with Image.open(path) as picture:
        colours = picture.convert("RGB")
    buffer = io.BytesIO()
    colours.resize(fitted(*colours.size), Image.Resampling.LANCZOS).save(buffer, "JPEG", quality=QUALITY)
    return path.stem, buffer.getvalue()
