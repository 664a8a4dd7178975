"""Where a DICOM image goes on its canvas: cut out, with square pixels."""

from __future__ import annotations

from dataclasses import replace

from shardforge.geometry.resize import Placement, place
from shardforge.recipe import Recipe


def place_dicom(
    width: int, height: int, aspect: float, cut: tuple[int, int, int, int] | None, recipe: Recipe
) -> Placement:
    """Decides the size of an image and its place on the canvas.

    Pixels that are not square are made so by stretching the side whose pixels are longer in millimetres; where the
    recipe resizes, that costs nothing, being one resampling with it.

    Args:
        width, height: of the stored image, in pixels.
        aspect: height of a pixel over its width.
        cut: left, top, right and bottom of what is cut out; None: all.

    Returns:
        The placement; its coordinates are pixels of the stored image.

    Raises:
        SampleError: as :func:`~shardforge.geometry.resize.place`.
    """
    left, top, right, bottom = cut or (0, 0, width, height)
    inner_width, inner_height = right - left, bottom - top
    square = (inner_width, max(1, round(inner_height * aspect)))
    if aspect < 1:
        square = (max(1, round(inner_width / aspect)), inner_height)
    placement = place(
        *square,
        mode=recipe.effective_resize,
        size=recipe.size,
        enlarge=recipe.enlarge,
        max_pixels=recipe.limits.pixels,
    )
    return replace(
        placement,
        source_width=inner_width,
        source_height=inner_height,
        crop_left=left,
        crop_top=top,
        whole_width=width,
        whole_height=height,
    )
