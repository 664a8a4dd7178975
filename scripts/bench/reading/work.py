"""What every contender of the reading benchmark has to do with a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

CROP = 224
"""Height and width of what is trained on."""
SQUARE = 256
"""Height and width of the arrays of the payload ``npy``."""
BATCH = 256
CLASSES = 10
SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
_TRIES = 10

Pixels = Any


def label_of(path: Path) -> int:
    """The class of a picture, from its number."""
    return int(path.stem) % CLASSES


def random_box(height: int, width: int, random: Any) -> tuple[int, int, int, int]:
    """Top, left, height and width of a crop, as torchvision's RandomResizedCrop draws them.

    Args:
        random: of the standard library, which is the fastest for single numbers.
    """
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for _ in range(_TRIES):
        area = height * width * random.uniform(*SCALE)
        ratio = math.exp(random.uniform(low, high))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


def tuned(data: bytes, random: Any) -> Pixels:
    """JPEG → uint8 [224, 224, 3], as fast as one function can: what a hand-tuned decoder does."""
    import cv2
    import simplejpeg

    return augmented(simplejpeg.decode_jpeg(data), random, cv2)


def augmented(pixels: Pixels, random: Any, cv2: Any) -> Pixels:
    """A random crop, resized and perhaps mirrored."""
    top, left, h, w = random_box(pixels.shape[0], pixels.shape[1], random)
    resized = cv2.resize(pixels[top : top + h, left : left + w], (CROP, CROP))
    return cv2.flip(resized, 1) if random.random() < 0.5 else resized


def documented() -> Any:
    """The usual transform: Pillow image → uint8 [3, 224, 224], by torchvision."""
    from scripts.bench.torchvision_operators import declare

    try:
        from torchvision import transforms
    except RuntimeError:
        declare()
        from torchvision import transforms

    return transforms.Compose(
        [transforms.RandomResizedCrop(CROP), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
    )


def pillow(data: bytes) -> Any:
    """JPEG → Pillow image."""
    import io

    from PIL import Image

    with Image.open(io.BytesIO(data)) as picture:
        return picture.convert("RGB")
