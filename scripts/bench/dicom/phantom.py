"""Pictures that are like real ones where it costs time: an outline, organs, fine structure, gradients and noise."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

_SEED = 4
_AIR, _LUNG, _FAT, _SOFT, _BLOOD, _BONE = -1000, -860, -100, 45, 180, 900
OUTSIDE = -1024
"""Hounsfield units beyond the circle that a scanner reconstructs."""


def chest(number: int, side: int) -> NDArray[np.int16]:
    """A slice through a chest in Hounsfield units, int16 [side, side], a seeded function of its arguments.

    The noise is that of a soft-tissue kernel: 15 HU, correlated over neighbouring pixels.
    """
    draw = np.random.default_rng((_SEED, number, side))
    values = np.full((side, side), _AIR, np.float32)

    def oval(x: float, y: float, wide: float, high: float, level: float, angle: float = 0) -> None:
        centre = (round(x * side * 16), round(y * side * 16))
        axes = (max(16, round(wide * side * 16)), max(16, round(high * side * 16)))
        cv2.ellipse(values, centre, axes, angle, 0, 360, level, cv2.FILLED, cv2.LINE_8, 4)

    size = draw.uniform(0.92, 1.08)
    oval(0.5, 0.5, 0.42 * size, 0.3 * size, _FAT)
    oval(0.5, 0.5, 0.39 * size, 0.27 * size, _SOFT)
    for left in (-1, 1):
        oval(0.5 + left * 0.19, 0.48, 0.14 * size, 0.2 * size, _LUNG, left * 10)
        for _ in range(90):
            radius, turn = 0.17 * draw.random() ** 0.5, draw.uniform(0, 2 * np.pi)
            thick = draw.uniform(0.001, 0.006)
            x, y = 0.5 + left * 0.19 + 0.7 * radius * np.cos(turn), 0.48 + radius * np.sin(turn)
            oval(x, y, thick, thick * draw.uniform(1, 6), _SOFT, draw.uniform(0, 180))
    oval(0.54, 0.47, 0.11, 0.1, _BLOOD * draw.uniform(0.2, 1.2), 30)
    oval(0.5, 0.68, 0.045, 0.04, _BONE * 0.5)
    oval(0.5, 0.685, 0.02, 0.018, _SOFT)
    for turn in np.linspace(0, 2 * np.pi, 22, endpoint=False) + draw.uniform(0, 0.3):
        x, y = 0.5 + 0.37 * size * np.cos(turn), 0.5 + 0.25 * size * np.sin(turn)
        oval(x, y, 0.022, 0.008, _BONE, np.degrees(turn) + 90)
    down, across = np.linspace(-1, 1, side, dtype=np.float32)[:, None], np.linspace(-1, 1, side, dtype=np.float32)
    noise = cv2.GaussianBlur(draw.standard_normal((side, side), np.float32), (5, 5), 0.8)
    values = cv2.GaussianBlur(values, (3, 3), 0.7) + 12 * down * across + noise * (15 / noise.std())
    values[down**2 + across**2 > 1] = OUTSIDE
    rounded: NDArray[np.int16] = np.clip(np.rint(values), OUTSIDE, 3071).astype(np.int16)
    return rounded


def breast(number: int, rows: int, columns: int) -> NDArray[np.uint16]:
    """A mammogram, 12 bits, uint16 [rows, columns], black beside the breast; a seeded function of its arguments."""
    draw = np.random.default_rng((_SEED, number, rows, columns))
    tissue = np.zeros((rows, columns), np.float32)
    for scale in (4, 16, 64, 256):
        coarse = draw.standard_normal((rows // scale + 2, columns // scale + 2), np.float32)
        tissue += cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_CUBIC) * scale**0.5
    down = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    across = np.linspace(0, 1, columns, dtype=np.float32)
    depth = 1 - (down / 0.85) ** 2 - (across / draw.uniform(0.6, 0.8)) ** 2
    noise = draw.standard_normal((rows, columns), np.float32)
    values = 900 + 1400 * np.sqrt(np.clip(depth, 0, None)) + 25 * tissue + 12 * noise
    values[depth <= 0] = 0
    rounded: NDArray[np.uint16] = np.clip(np.rint(values), 0, 4095).astype(np.uint16)
    return rounded
