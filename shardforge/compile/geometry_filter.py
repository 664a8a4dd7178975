"""Leaves out pictures by their size and shape. Apart from other filters, as worker processes need no more."""

from __future__ import annotations

from shardforge.errors import SampleError
from shardforge.sections import FilterOptions
from shardforge.shards.catalogue import Reason

HEADER_TELLS = frozenset(
    (
        "jpeg",
        "png",
        "webp",
        "tiff",
        "gif",
        "bmp",
        "pnm",
        "avif",
        "heif",
        "jpeg2000",
        "jxl",
        "qoi",
        "psd",
        "pcx",
        "tga",
    )
)
"""Formats whose header has the size that decoding gives; of an icon's pictures the decoder chooses one."""


def judge_geometry(width: int, height: int, filters: FilterOptions) -> None:
    """Lets a picture of this upright size pass, bounds included.

    Raises:
        SampleError: ``filtered_side``, ``filtered_area`` or ``filtered_aspect``, the first that applies.
    """
    short, long = sorted((width, height))
    if _below(short, filters.min_side) or _above(long, filters.max_side):
        raise SampleError(Reason.FILTERED_SIDE, f"{width} x {height}")
    if _below(width * height, filters.min_area) or _above(width * height, filters.max_area):
        raise SampleError(Reason.FILTERED_AREA, f"{width} x {height}")
    if _below(width / height, filters.min_aspect) or _above(width / height, filters.max_aspect):
        raise SampleError(Reason.FILTERED_ASPECT, f"{width} x {height}")


def _below(value: float, bound: float | None) -> bool:
    return bound is not None and value < bound


def _above(value: float, bound: float | None) -> bool:
    return bound is not None and value > bound
