"""How close stored pictures are to the ideal: the source decoded in full and resized with Lanczos, not encoded."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scripts.bench.work import fitted

Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Quality:
    """Means over the pictures looked at; ``psnr_least`` is the worst one. PSNR in dB, SSIM at most 1."""

    pictures: int
    psnr: float
    psnr_least: float
    ssim: float


def psnr(one: Pixels, two: Pixels) -> float:
    """Peak signal-to-noise ratio of 8-bit pixels over all channels, in dB; 99 for equal ones."""
    error = float(np.mean((one.astype(np.float64) - two.astype(np.float64)) ** 2))
    return 10 * float(np.log10(255**2 / error)) if error else 99.0


def ssim(one: Pixels, two: Pixels) -> float:
    """Structural similarity of the luma, with the window and constants of Wang et al. 2004 (IEEE Transactions on
    Image Processing 13(4), 600-612): a Gaussian of 11 x 11 pixels and sigma 1.5, K1 = 0.01, K2 = 0.03; the mean over
    all places where the window lies inside.

    Args:
        one, two: uint8 [H, W, 3], sides of at least 11.
    """
    x, y = (cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY).astype(np.float64) for pixels in (one, two))
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2

    def local(values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(cv2.GaussianBlur(values, (11, 11), 1.5))[5:-5, 5:-5]

    mean_x, mean_y = local(x), local(y)
    var_x, var_y = local(x * x) - mean_x**2, local(y * y) - mean_y**2
    covariance = local(x * y) - mean_x * mean_y
    alike = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    return float(np.mean(alike / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))))


def judge(stored: Path, source: Path) -> Quality | None:
    """Compares the JPEGs in ``stored`` with their sources of the same name.

    Returns:
        None if there are none.

    Raises:
        ValueError: a stored picture has not the size that was asked for.
    """
    found = [_compare(path, source / path.name) for path in sorted(stored.glob("*.jpg"))]
    if not found:
        return None
    ratios, similarities = zip(*found, strict=True)
    return Quality(len(found), statistics.fmean(ratios), min(ratios), statistics.fmean(similarities))


def _compare(path: Path, original: Path) -> tuple[float, float]:
    with Image.open(original) as picture:
        ideal = np.asarray(_resized(picture.convert("RGB")))
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    if pixels.shape != ideal.shape:
        raise ValueError(
            f"{path.name} is {pixels.shape[1]} x {pixels.shape[0]}, not {ideal.shape[1]} x {ideal.shape[0]}"
        )
    return psnr(pixels, ideal), ssim(pixels, ideal)


def _resized(picture: Image.Image) -> Image.Image:
    return picture.resize(fitted(*picture.size), Image.Resampling.LANCZOS)
