"""Where the breast is in a mammogram: most of the picture is air, and labels and markers stand in its corners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

Side = Literal["left", "right"]

_COARSE = 512
_SMALLEST_SHARE = 0.02
_LEAST_CONTRAST = 4.0
_NOISE = 4.0


@dataclass(frozen=True)
class BreastPlace:
    """What was found.

    Attributes:
        box: left, top, right and bottom in pixels of the picture, right and bottom exclusive; the whole picture where
            no breast stands out.
        chest_wall: the side of the picture where the chest wall is; None where nothing was found or both sides are
            alike. Nothing is flipped: laterality stays what the header says.
    """

    box: tuple[int, int, int, int]
    chest_wall: Side | None = None


def locate_breast(
    picture: NDArray[np.uint8], *, margin: float = 0.02, padding: NDArray[np.bool_] | None = None
) -> BreastPlace:
    """The largest connected part of the picture that is brighter than air, with a margin.

    The picture is reduced to 512 pixels first, which averages noise away. Air is the most common of the darker
    levels; what exceeds it by more than its noise is something, and the largest such thing the breast. Labels,
    markers and scratches are smaller, and stand apart.

    Args:
        picture: uint8 [H, W] as displayed: windowed, and air dark (MONOCHROME1 is inverted by then).
        margin: on every side, as a part of the longer side of the picture.
        padding: bool [H, W], pixels that are no image (Pixel Padding Value): neither air nor breast.

    Returns:
        The whole picture if nothing covers at least 2 % of it.
    """
    height, width = picture.shape
    whole = BreastPlace((0, 0, width, height))
    if min(height, width) == 0:
        return whole
    reduction = max(1.0, max(height, width) / _COARSE)
    size = (max(1, round(width / reduction)), max(1, round(height / reduction)))
    coarse = _reduced(picture, size)
    valid = np.ones(coarse.shape, np.bool_)
    if padding is not None:
        valid = _reduced(padding.astype(np.uint8) * 255, size) == 0
    component = _largest_component(coarse, valid)
    if component is None:
        return whole
    rows, columns = np.flatnonzero(component.any(1)), np.flatnonzero(component.any(0))
    extra = margin * max(height, width)
    scale_x, scale_y = width / size[0], height / size[1]
    box = (
        max(0, int(np.floor(columns[0] * scale_x - extra))),
        max(0, int(np.floor(rows[0] * scale_y - extra))),
        min(width, int(np.ceil((columns[-1] + 1) * scale_x + extra))),
        min(height, int(np.ceil((rows[-1] + 1) * scale_y + extra))),
    )
    return BreastPlace(box, _wide_side(component[:, columns[0] : columns[-1] + 1]))


def _reduced(picture: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)


def _largest_component(coarse: NDArray[np.uint8], valid: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """The mask of the breast in the coarse picture, or None."""
    levels = coarse[valid].astype(np.float64)
    if levels.size == 0:
        return None
    middle = (levels.min() + levels.max()) / 2
    dark = np.bincount(levels[levels <= middle].astype(np.int64))
    air = int(np.argmax(dark))
    below = levels[levels <= air]
    noise = float(np.sqrt(np.mean((below - air) ** 2)))
    something = (coarse > air + max(_LEAST_CONTRAST, _NOISE * noise)) & valid
    # Lines and letters thinner than three coarse pixels vanish, and with them what ties a label to the breast.
    opened = cv2.morphologyEx(something.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    _, labels, statistics, _ = cv2.connectedComponentsWithStats(opened, connectivity=4)
    areas = statistics[1:, cv2.CC_STAT_AREA]
    if areas.size == 0 or areas.max() < _SMALLEST_SHARE * coarse.size:
        return None
    return np.asarray(labels == 1 + int(np.argmax(areas)))


def _wide_side(component: NDArray[np.bool_]) -> Side | None:
    """The breast is tall at the chest wall and ends in the nipple: the half that holds clearly more of it."""
    half = component.shape[1] // 2
    left, right = int(component[:, :half].sum()), int(component[:, component.shape[1] - half :].sum())
    if max(left, right) < 1.1 * min(left, right) or max(left, right) == 0:
        return None
    return "left" if left > right else "right"
