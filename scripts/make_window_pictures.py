"""Draws what window presets show of two synthetic CT slices, for the README: docs/windows.png, or PATH.

    scripts/make_window_pictures.py [PATH]

The slices are drawn here, of ellipses in Hounsfield units as tissues have them: nobody's anatomy. What stands in the
picture is made of them by :class:`shardforge.transforms.Window`, as in training.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.encode import encode
from shardforge.dicom.presets import COMBINATIONS, PRESETS
from shardforge.transforms import Window

Slice = NDArray[np.int16]
Picture = NDArray[np.uint8]

TARGET = Path(__file__).resolve().parent.parent / "docs" / "windows.png"
TILE, GAP, CAPTION, NOTE = 196, 6, 34, 20
CHEST = ("lung", "mediastinum", "angio", "bone", "pe")
HEAD = ("brain", "subdural", "stroke", "bone", "brain-subdural-bone")
_WORDS = "Two synthetic slices, drawn in Hounsfield units: center / width of each window below its picture."
_FINER = 4
"""Tissues are drawn on a grid so many times as fine, and averaged: a voxel has the mean of what it holds."""


class Ellipse(NamedTuple):
    """One tissue, painted over what is there: center and half axes as shares of the slice's side, turn in degrees."""

    hu: float
    x: float
    y: float
    a: float
    b: float
    turn: float = 0.0


def _lung(side: int) -> Iterable[Ellipse]:
    """One lung, ``side`` -1 or 1, with vessels that grow thinner from its root outward."""
    at = 0.5 + 0.205 * side
    yield Ellipse(-860, at, 0.47, 0.145, 0.235, 8 * side)
    for reach, radius in ((0.03, 0.013), (0.06, 0.010), (0.09, 0.008), (0.115, 0.006)):
        for degrees in range(-150, 181, 30):
            along, across = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            yield Ellipse(
                20, at + reach * along, 0.47 + 1.65 * reach * across, radius * 1.5, radius * 0.7, degrees + 15
            )


def chest() -> list[Ellipse]:
    """A chest with contrast in its vessels: an embolus in the left pulmonary artery, a solid and a ground-glass
    nodule, a bulla, a lymph node."""
    wall = [
        Ellipse(20, 0.5, 0.5, 0.475, 0.385),
        Ellipse(-105, 0.5, 0.5, 0.468, 0.378),
        Ellipse(55, 0.5, 0.5, 0.425, 0.335),
        Ellipse(-95, 0.5, 0.49, 0.395, 0.305),
        Ellipse(50, 0.5, 0.49, 0.385, 0.295),
    ]
    ribs = []
    for degrees in (12, 42, 138, 168, 200, 228, 312, 340):
        x, y = 0.5 + 0.405 * math.cos(math.radians(degrees)), 0.49 + 0.315 * math.sin(math.radians(degrees))
        ribs += [Ellipse(950, x, y, 0.032, 0.016, degrees + 90), Ellipse(220, x, y, 0.022, 0.007, degrees + 90)]
    findings = [
        Ellipse(40, 0.245, 0.40, 0.020, 0.018),
        Ellipse(-560, 0.765, 0.58, 0.034, 0.028, 30),
        Ellipse(-985, 0.715, 0.31, 0.028, 0.036, 10),
    ]
    mediastinum = [
        Ellipse(-95, 0.5, 0.44, 0.10, 0.20),
        Ellipse(45, 0.515, 0.40, 0.115, 0.105, 20),
        Ellipse(310, 0.455, 0.375, 0.036, 0.036),
        Ellipse(380, 0.53, 0.36, 0.034, 0.030),
        Ellipse(380, 0.565, 0.425, 0.060, 0.024, 25),
        Ellipse(65, 0.578, 0.431, 0.026, 0.011, 25),
        Ellipse(310, 0.562, 0.56, 0.030, 0.030),
        Ellipse(700, 0.541, 0.56, 0.004, 0.012),
        Ellipse(40, 0.44, 0.51, 0.017, 0.013),
        Ellipse(-990, 0.50, 0.50, 0.021, 0.018),
        Ellipse(40, 0.512, 0.555, 0.013, 0.011),
    ]
    bones = [
        Ellipse(900, 0.5, 0.185, 0.050, 0.018),
        Ellipse(200, 0.5, 0.185, 0.041, 0.010),
        Ellipse(900, 0.5, 0.67, 0.062, 0.055),
        Ellipse(260, 0.5, 0.67, 0.052, 0.046),
        Ellipse(800, 0.5, 0.755, 0.050, 0.038),
        Ellipse(800, 0.5, 0.81, 0.012, 0.045),
        Ellipse(800, 0.425, 0.755, 0.045, 0.012, -25),
        Ellipse(800, 0.575, 0.755, 0.045, 0.012, 25),
        Ellipse(25, 0.5, 0.752, 0.029, 0.022),
    ]
    return [*wall, *ribs, *_lung(-1), *_lung(1), *findings, *mediastinum, *bones]


def head() -> list[Ellipse]:
    """A head with a crescent of blood under the skull, a small bleeding, an old and an early infarct, a fracture."""
    skull = [
        Ellipse(30, 0.5, 0.5, 0.380, 0.460),
        Ellipse(-90, 0.5, 0.5, 0.372, 0.452),
        Ellipse(40, 0.5, 0.5, 0.362, 0.442),
        Ellipse(1500, 0.5, 0.5, 0.350, 0.430),
        Ellipse(650, 0.5, 0.5, 0.337, 0.417),
        Ellipse(1500, 0.5, 0.5, 0.326, 0.406),
        Ellipse(40, 0.5 + 0.330, 0.36, 0.026, 0.004, -20),
        Ellipse(8, 0.5, 0.5, 0.310, 0.390),
    ]
    # What the brain leaves free on the right is filled with blood.
    blood = [Ellipse(72, 0.5, 0.47, 0.309, 0.33)]
    brain = [Ellipse(8, 0.468, 0.5, 0.283, 0.385), Ellipse(38, 0.468, 0.5, 0.271, 0.376)]
    folds = []
    for degrees in range(0, 360, 15):
        x = 0.468 + 0.262 * math.cos(math.radians(degrees))
        y = 0.5 + 0.367 * math.sin(math.radians(degrees))
        folds.append(Ellipse(12, x, y, 0.020, 0.005, degrees + 6))
    white = [Ellipse(28, 0.468 + 0.125 * side, 0.5, 0.095, 0.285, 4 * side) for side in (-1, 1)]
    nuclei = [Ellipse(39, 0.462 + 0.088 * side, 0.50, 0.030, 0.062, 14 * side) for side in (-1, 1)]
    ventricles = [
        Ellipse(6, 0.462 + 0.040 * side, 0.5 + 0.105 * end, 0.017, 0.075, 16 * side * -end)
        for side in (-1, 1)
        for end in (-1, 1)
    ]
    rest = [
        Ellipse(8, 0.462, 0.505, 0.006, 0.040),
        Ellipse(52, 0.478, 0.215, 0.004, 0.09),
        Ellipse(52, 0.478, 0.80, 0.004, 0.09),
        Ellipse(160, 0.462, 0.57, 0.011, 0.011),
        Ellipse(180, 0.402, 0.655, 0.010, 0.015),
        Ellipse(180, 0.528, 0.655, 0.010, 0.015),
        Ellipse(66, 0.572, 0.435, 0.026, 0.034, 20),
        Ellipse(14, 0.330, 0.755, 0.042, 0.034, 30),
        Ellipse(33, 0.290, 0.42, 0.075, 0.100, 10),
    ]
    return [*skull, *blood, *brain, *folds, *white, *nuclei, *ventricles, *rest]


def draw(tissues: Iterable[Ellipse], size: int = TILE) -> Slice:
    """A slice in Hounsfield units, int16 [size, size, 1]."""
    fine = size * _FINER
    places = (np.arange(fine, dtype=np.float64) + 0.5) / fine
    values = np.full((fine, fine), -1000.0)
    for hu, x, y, a, b, turn in tissues:
        cos, sin = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        right, down = places[None, :] - x, places[:, None] - y
        inside = ((right * cos + down * sin) / a) ** 2 + ((down * cos - right * sin) / b) ** 2 <= 1
        values[inside] = hu
    means = values.reshape(size, _FINER, size, _FINER).mean(axis=(1, 3), keepdims=True)
    rounded: Slice = np.rint(means[:, 0]).astype(np.int16)
    return rounded


def tile(slice_: Slice, name: str) -> Picture:
    """The slice through a preset or combination, uint8 [size, size, 3]."""
    shown = Window(name)(slice_)
    return np.repeat(shown, 3, axis=2) if shown.shape[2] == 1 else shown


def place_of(row: int, column: int) -> tuple[int, int]:
    """Top and left of a tile in the picture."""
    return row * (TILE + CAPTION + GAP), column * (TILE + GAP)


def caption(name: str) -> tuple[str, str]:
    """The name, and center/width in HU."""
    if name in PRESETS:
        return name, f"{PRESETS[name].center:g} / {PRESETS[name].width:g}"
    windows = COMBINATIONS[name].windows
    return name, "RGB: " + ", ".join(f"{center:g}/{width:g}" for center, width in windows)


def grid() -> Picture:
    """The whole picture, uint8 [H, W, 3]: chest above, head below, a column per window."""
    height, width = place_of(1, len(HEAD) - 1)
    picture = np.full((height + TILE + CAPTION + NOTE, width + TILE, 3), 255, np.uint8)
    for row, (tissues, names) in enumerate(((chest(), CHEST), (head(), HEAD))):
        slice_ = draw(tissues)
        for column, name in enumerate(names):
            top, left = place_of(row, column)
            picture[top : top + TILE, left : left + TILE] = tile(slice_, name)
            for line, text in enumerate(caption(name)):
                _write(picture, text, left + 2, top + TILE + 13 + 15 * line)
    _write(picture, _WORDS, 2, len(picture) - 6)
    return picture


def _write(picture: Picture, text: str, left: int, bottom: int) -> None:
    cv2.putText(picture, text, (left, bottom), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (0, 0, 0), 1, cv2.LINE_AA)


def main() -> None:
    if len(sys.argv) > 2:
        sys.exit("usage: make_window_pictures.py [PATH]")
    target = Path(sys.argv[1]) if len(sys.argv) == 2 else TARGET
    content = encode(grid(), format="png", quality=95, subsampling="420")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    print(f"{target}: {len(content):,} bytes")


if __name__ == "__main__":
    main()
