"""One frame of a DICOM file as modality values, or as colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.dicom.cross_check import cross_check
from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.codecs.dicom.pixels import StoredFrame, decode_frame
from shardforge.codecs.dicom.read import DicomFile
from shardforge.codecs.dicom.rgb import frame_to_rgb, is_colour
from shardforge.compile.dicom.checks import NO_SECOND_DECODER
from shardforge.dicom.facts import FrameMeaning
from shardforge.dicom.modality import ModalityTables
from shardforge.dicom.padding import fill_padding, padding_mask
from shardforge.dicom.repair import repair_wrap
from shardforge.errors import SampleError
from shardforge.sections import DicomOptions
from shardforge.shards.catalogue import Flag, Reason


@dataclass(frozen=True)
class Frame:
    """A decoded frame.

    Attributes:
        values: int16, int32 or float32 [H, W] modality values, padding filled; or uint8 [H, W, 3] RGB.
        mask: bool [H, W], True at padding; None where no pixel is.
        meaning: of the stored values.
        decoder: who decoded them.
        flags: what was noticed.
        shown_bits: the values are grey levels of so many bits already, without a rescale; else None.
        second_decoder: who decoded them as well, with the same result, or :data:`NO_SECOND_DECODER`; None: not asked.
        valid_rows: rows that the file has; less than H where it ends early and was salvaged.
    """

    values: NDArray[Any]
    mask: NDArray[np.bool_] | None
    meaning: FrameMeaning
    decoder: str
    flags: tuple[Flag, ...]
    valid_rows: int
    shown_bits: int | None = None
    second_decoder: str | None = None

    @property
    def coloured(self) -> bool:
        return self.values.ndim == 3


def read_frame(
    file: DicomFile, number: int, options: DicomOptions, tables: ModalityTables, *, checked: bool
) -> Frame:
    """Decodes a frame and gives its values their meaning.

    Args:
        checked: compare with a second decoder.

    Raises:
        SampleError: what is wrong with the frame; ``decoders_disagree``.
    """
    meaning, noticed = frame_meaning(file, number)
    stored = decode_frame(file, number, salvage=options.truncated == "salvage")
    flags = [*file.flags, *noticed, *stored.flags]
    second = _second_decoder(file, number, stored) if checked else None
    if second not in (None, NO_SECOND_DECODER):
        flags.append(Flag.CROSS_CHECKED)
    if is_colour(file):
        colours, told = frame_to_rgb(file, stored)
        return Frame(
            colours,
            None,
            meaning,
            stored.decoder,
            _once([*flags, *told]),
            stored.valid_rows,
            second_decoder=second,
        )
    values = stored.values
    mask = padding_mask(values, meaning)
    if options.repair == "wrapped" and Flag.UNSIGNED_WRAP_SUSPECT in flags:
        values, meaning = repair_wrap(values, meaning)
        flags = [Flag.REPAIRED if flag is Flag.UNSIGNED_WRAP_SUSPECT else flag for flag in flags]
    modality = tables.apply(values, file.format, meaning)
    if modality.dtype == np.float32 and not np.isfinite(modality).all():
        mask = ~np.isfinite(modality) if mask is None else mask | ~np.isfinite(modality)
        modality = np.where(mask, np.float32(0), modality)
        if mask.all():
            raise SampleError(Reason.CORRUPT, "no pixel has a finite value")
    modality = fill_padding(modality, mask, inverted=meaning.inverted)
    shown_bits = _shown_bits(file, meaning)
    return Frame(modality, mask, meaning, stored.decoder, _once(flags), stored.valid_rows, shown_bits, second)


def _shown_bits(file: DicomFile, meaning: FrameMeaning) -> int | None:
    """8 unsigned bits without a modality transformation are grey levels for the screen, not measurements."""
    plain = meaning.modality_lut is None and (meaning.slope, meaning.intercept) == (1.0, 0.0)
    return 8 if plain and file.format.bits_stored == 8 and not file.format.signed else None


def _second_decoder(file: DicomFile, number: int, stored: StoredFrame) -> str:
    """A salvaged frame has nothing that another decoder would have to agree with."""
    found = None if Flag.SALVAGED in stored.flags else cross_check(file, number, stored)
    return found or NO_SECOND_DECODER


def _once(flags: list[Flag]) -> tuple[Flag, ...]:
    return tuple(dict.fromkeys(flags))
