"""Antialiased resizing as convolution in float64, written from the kernels' definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Kernel = tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], float]


def _lanczos(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def _bicubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x, a = np.abs(x), -0.5
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _bilinear(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.clip(1 - np.abs(x), 0, None)


def _box(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return ((x > -0.5) & (x <= 0.5)).astype(float)


KERNELS: dict[Any, Kernel] = {
    "lanczos": (_lanczos, 3), "bicubic": (_bicubic, 2), "bilinear": (_bilinear, 1), "box": (_box, 0.5)
}  # fmt: skip


def weights(source: int, target: int, low: float, high: float, kernel: Kernel) -> NDArray[np.float64]:
    """[target, source]: a kernel stretched by the reduction, cut at the edges and normalised."""
    shape, support = kernel
    scale = (high - low) / target
    stretch = max(1.0, scale)
    out = np.zeros((target, source))
    for i in range(target):
        centre = low + (i + 0.5) * scale
        first = max(0, int(centre - support * stretch + 0.5))
        last = min(source, int(centre + support * stretch + 0.5))
        row = shape((np.arange(first, last) - centre + 0.5) / stretch)
        out[i, first:last] = row / row.sum()
    return out


def reference(pixels: NDArray[Any], size: tuple[int, int], box: Any, kernel: Kernel) -> NDArray[np.float64]:
    """``pixels`` [H, W, C] inside ``box`` (left, top, right, bottom) brought to ``size`` (width, height)."""
    left, top, right, bottom = box
    across = weights(pixels.shape[1], size[0], left, right, kernel)
    down = weights(pixels.shape[0], size[1], top, bottom, kernel)
    most = np.iinfo(pixels.dtype).max
    half = np.einsum("hwc,xw->hxc", pixels.astype(np.float64), across, optimize=True)
    # 8-bit resizers keep 8 bits between the two directions, which cuts off what a kernel overshoots.
    half = half.clip(0, most) if pixels.dtype == np.uint8 else half
    return np.einsum("yh,hxc->yxc", down, half, optimize=True).clip(0, most)
