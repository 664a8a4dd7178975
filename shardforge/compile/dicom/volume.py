"""A series as one array: slices in order of place, brought to one type and grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.codecs.dicom.read import DicomFile
from shardforge.compile.dicom.frame import Frame
from shardforge.compile.dicom.picture import Shown, stored_values
from shardforge.compile.dicom.spares import SliceCopies
from shardforge.dicom.choose import choose
from shardforge.dicom.facts import FrameMeaning
from shardforge.dicom.modality import ModalityTables, modality_dtype
from shardforge.dicom.render import render
from shardforge.dicom.voi import VoiTables
from shardforge.dicom.volume import VolumeGrid, fill_volume, plan_volume
from shardforge.errors import SampleError
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class Volume:
    """A stored volume.

    Attributes:
        values: [Z, Y, X]: int16 or float32 modality values, or uint8 or uint16 through a window.
        first: its first slice.
        shown: the window that was applied.
        flags: of all slices.
    """

    values: NDArray[Any]
    grid: VolumeGrid
    first: Frame
    shown: Shown
    flags: tuple[Flag, ...]

    @property
    def columns(self) -> dict[str, Any]:
        """The row's columns that only volumes have."""
        z, y, x = self.grid.spacing
        return {
            "dicom_depth": self.values.shape[0],
            "dicom_spacing_slice": z,
            "dicom_spacing_row": y,
            "dicom_spacing_col": x,
            "dicom_affine": self.grid.affine.ravel().tolist(),
        }


def make_volume(places: Sequence[SliceCopies], recipe: Recipe, modality: ModalityTables, voi: VoiTables) -> Volume:
    """Decodes the slices of a series and lays them on one grid.

    Args:
        places: every slice, in order of place.

    Raises:
        SampleError: ``bad_geometry``, or what is wrong with a slice.
    """
    first_file = places[0].file
    meanings = [frame_meaning(place.file, place.number)[0] for place in places]
    grid = _grid(meanings, first_file, recipe)
    flags: dict[Flag, None] = {}
    frames = _frames(places, recipe, modality, flags)
    first = next(frames)
    whole = modality_dtype(first_file.format, *meanings) == np.int16
    values = fill_volume(grid, _typed(chain([first], frames), recipe, np.int16 if whole else np.float32))
    shown = Shown(values)
    if recipe.windows:
        choices = choose(
            recipe.windows,
            first.meaning,
            values,
            None,
            function=recipe.dicom.voi,
            nonzero=first_file.modality == "MR",
            shown_bits=first.shown_bits,
        )
        flat = values.reshape(values.shape[0], -1)
        vois = [choice.voi for choice in choices]
        found = render(flat, None, vois, voi, inverted=first.meaning.inverted, bits=recipe.depth)
        shown = Shown(found.pixels.reshape(values.shape), choices, found.clip_low, found.clip_high)
    return Volume(shown.pixels, grid, first, shown, tuple(dict.fromkeys([*flags, *shown.flags])))


def _grid(meanings: Sequence[FrameMeaning], file: DicomFile, recipe: Recipe) -> VolumeGrid:
    orientation, spacing = meanings[0].orientation, meanings[0].spacing
    positions = np.array([meaning.position or (np.nan,) * 3 for meaning in meanings], np.float64)
    if orientation is None or spacing is None or not np.isfinite(positions).all():
        raise SampleError(Reason.BAD_GEOMETRY, "slices without position, orientation or spacing")
    if recipe.dicom.irregular == "keep":
        # Which slices are where the row's findings say; the array has one distance for all.
        positions = np.linspace(positions[0], positions[-1], len(positions))
    shape = (file.format.rows, file.format.columns)
    return plan_volume(positions, orientation, shape, spacing, recipe.dicom.spacing)


def _frames(
    places: Sequence[SliceCopies], recipe: Recipe, tables: ModalityTables, flags: dict[Flag, None]
) -> Iterator[Frame]:
    for place in places:
        frame = place.decode(recipe.dicom, tables)
        if frame.coloured:
            raise SampleError(Reason.UNSUPPORTED, "a volume of colour images")
        flags.update(dict.fromkeys(frame.flags))
        yield frame


def _typed(frames: Iterable[Frame], recipe: Recipe, shown: DTypeLike) -> Iterator[NDArray[Any]]:
    """The slices in one type: as the recipe stores them, or as a window will be applied to them."""
    for frame in frames:
        if recipe.modality_values:
            yield stored_values(frame.values, recipe)
        else:
            yield frame.values.astype(shown, copy=False)
