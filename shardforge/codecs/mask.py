"""Label pictures: every pixel is the number of a class or an object, never a colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs import gif, others, png, pnm, tiff
from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.codecs.samples import Array, Header
from shardforge.errors import SampleError
from shardforge.geometry.orientation import apply_orientation
from shardforge.shards.catalogue import Reason


@dataclass(frozen=True)
class Mask:
    """A decoded mask.

    Attributes:
        labels: [H, W] uint8 or uint16, upright, C-contiguous.
        oriented: an orientation other than 1 was applied.
    """

    labels: NDArray[np.uint8] | NDArray[np.uint16]
    oriented: bool


def decode_mask(data: bytes, *, limits: Limits, orientation: int = 1) -> Mask:
    """The labels of a mask file: PNG, TIFF, BMP, GIF or PNM, of one channel.

    The stored value is the label: the palette index, or the grey level at its own depth (a 1-bit mask has 0 and 1).
    No profile, gamma, transparency or scaling is applied.

    Args:
        data: the whole file.
        orientation: by which a mask is turned that declares none itself, 1..8: its image's, if masks lie over the
            stored pixels; 1, if they lie over the upright picture. A mask's size cannot tell: it would only do so for
            orientations 5 to 8 of pictures that are not square.

    Raises:
        SampleError: as for images; ``unsupported`` for lossy formats, colours, and labels outside 0..65535.
    """
    header = read_header(data, limits)
    labels = _one_channel(_stored(data, header))
    applied = orientation if header.orientation is None else header.orientation
    return Mask(apply_orientation(labels, applied), applied > 1)


def _stored(data: bytes, header: Header) -> Array:
    match header.format:
        case "png":
            return png.decode_labels(data)
        case "tiff":
            return tiff.decode_labels(data)
        case "pnm":
            return pnm.stored(data)[0]
        case "gif":
            return gif.decode_labels(data)
        case "bmp":
            return others.bmp_labels(data, header)
        case _:
            raise SampleError(Reason.UNSUPPORTED, f"a mask in {header.format}: labels need an exact format, like PNG")


def _one_channel(values: Array) -> Array:
    """[H, W]; several channels are accepted if they say the same and any alpha is opaque."""
    if values.ndim == 3:
        white = np.iinfo(values.dtype).max if values.dtype.kind in "ui" else 1
        if values.shape[2] in (2, 4):
            if int(values[..., -1].min()) != white:
                raise SampleError(Reason.UNSUPPORTED, "a mask with transparency")
            values = values[..., :-1]
        if not (values == values[..., :1]).all():
            raise SampleError(Reason.UNSUPPORTED, "a mask in colours: labels are palette indices or grey levels")
        values = values[..., 0]
    if values.dtype in (np.uint8, np.uint16):
        return values
    if values.dtype.kind not in "ui" or int(values.min()) < 0 or int(values.max()) > 65535:
        raise SampleError(Reason.UNSUPPORTED, f"labels of {values.dtype}, outside 0..65535")
    return values.astype(np.uint16)
