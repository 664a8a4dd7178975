"""The antialiased kernels that pictures are resized with, by the names that recipes use."""

from __future__ import annotations

from typing import Literal

from PIL import Image

Resampler = Literal["lanczos", "bicubic", "bilinear", "box"]

KERNELS = {
    "lanczos": Image.Resampling.LANCZOS,
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
    "box": Image.Resampling.BOX,
}
"""Name → Pillow's."""
