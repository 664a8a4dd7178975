"""What a DICOM file says of its pixels, as plain values: the contract between reading a file and giving it meaning.

Tag names are those of PS3.6. Everything here is resolved: per-frame functional groups before shared ones before the
top level (PS3.3 C.7.6.16), invalid values left out and flagged by who read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

VoiFunction = Literal["LINEAR", "LINEAR_EXACT", "SIGMOID"]


@dataclass(frozen=True)
class Lut:
    """A look-up table: Modality LUT, VOI LUT or Palette Color LUT (PS3.3 C.11.1.1, C.11.2.1.1, C.7.6.3.1.5).

    Attributes:
        first: the input that ``data[0]`` belongs to; its sign is resolved.
        bits: of the entries, as declared.
        data: uint16 [N], N from 1 to 65536.
    """

    first: int
    bits: int
    data: NDArray[np.uint16]

    @property
    def flat(self) -> bool:
        """All inputs give one value, so that it shows nothing."""
        return bool(self.data.min() == self.data.max())


@dataclass(frozen=True)
class Window:
    """Window center and width in modality values (HU for CT), and the VOI LUT function (PS3.3 C.11.2.1.2)."""

    center: float
    width: float
    function: VoiFunction = "LINEAR"


@dataclass(frozen=True)
class Palette:
    """Red, green and blue look-up tables of PALETTE COLOR images."""

    red: Lut
    green: Lut
    blue: Lut


@dataclass(frozen=True)
class PixelFormat:
    """The Image Pixel module (PS3.3 C.7.6.3).

    Attributes:
        kind: ``int`` (PixelData), ``float`` (FloatPixelData) or ``double`` (DoubleFloatPixelData).
        planar: colours stand plane by plane in native (unencapsulated) data.
        photometric: PhotometricInterpretation, upper case, stripped.
    """

    rows: int
    columns: int
    samples: int
    bits_allocated: int
    bits_stored: int
    high_bit: int
    signed: bool
    planar: bool
    photometric: str
    kind: Literal["int", "float", "double"] = "int"


@dataclass(frozen=True)
class FrameMeaning:
    """How the stored values of one frame are to be read.

    Attributes:
        slope, intercept: of the rescale; 1 and 0 where none is valid.
        modality_lut: in place of the rescale, or None.
        modality_from: where the rescale or table stands: ``frame``, ``shared``, ``top``, or ``default`` (none).
        windows: valid windows in file order; empty for colour.
        voi_luts: valid VOI tables in file order. Where there are both, the tables come first (PS3.3 C.11.2 allows
            either).
        voi_from: as ``modality_from``.
        padding: lowest and highest stored value that mean "no image here", inclusive, or None.
        inverted: the lowest value is shown white (MONOCHROME1).
        spacing: distance between the centres of neighbouring rows, and of columns, in mm, or None.
        spacing_source: ``pixel_spacing``, ``imager_pixel_spacing``, ``nominal_scanned_pixel_spacing``,
            ``ultrasound_region`` or None.
        aspect: height of a pixel over its width (1 for square pixels), from the spacing or PixelAspectRatio.
        position, orientation: ImagePositionPatient (mm) and ImageOrientationPatient, or None.
    """

    slope: float = 1.0
    intercept: float = 0.0
    modality_lut: Lut | None = None
    modality_from: Literal["frame", "shared", "top", "default"] = "default"
    windows: tuple[Window, ...] = ()
    voi_luts: tuple[Lut, ...] = ()
    voi_from: Literal["frame", "shared", "top", "default"] = "default"
    padding: tuple[int, int] | None = None
    inverted: bool = False
    spacing: tuple[float, float] | None = None
    spacing_source: str | None = None
    aspect: float = 1.0
    position: tuple[float, float, float] | None = None
    orientation: tuple[float, float, float, float, float, float] | None = None
