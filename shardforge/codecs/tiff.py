"""TIFF (TIFF 6.0 and BigTIFF): header and decoding of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

import imagecodecs
import numpy as np

from shardforge.codecs.exif import ORIENTATION
from shardforge.codecs.samples import Array, Header, Model, Samples, attempt
from shardforge.codecs.tiff_damage import check_strips
from shardforge.codecs.tiff_tags import BadTagsError, Directory, EndsEarlyError, directories
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

_SUBFILE, _WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 254, 256, 257, 258, 259, 262
_STRIP_OFFSETS, _SAMPLES, _STRIP_SIZES, _PLANAR, _COLOURS, _TILE_OFFSETS, _TILE_SIZES = (
    273,
    277,
    279,
    284,
    320,
    324,
    325,
)
_SUB_DIRECTORIES, _EXTRA, _FORMAT, _DEPTH, _ICC, _DNG = 330, 338, 339, 32997, 34675, 50706
_REDUCED, _MASK = 1, 4
_JPEG = 7
_PALETTE, _INK, _YCBCR = 3, 5, 6
_MODELS: dict[int, tuple[Model, int]] = {
    0: ("grey", 1),
    1: ("grey", 1),
    2: ("rgb", 3),
    _INK: ("cmyk", 4),
    8: ("lab", 3),
    9: ("lab", 3),
}
_MAX_PAGES = 100_000
_MAX_SAMPLES = 8


@contextmanager
def _tag_errors() -> Iterator[None]:
    try:
        yield
    except EndsEarlyError as error:
        raise SampleError(Reason.TRUNCATED, str(error)) from None
    except BadTagsError as error:
        raise SampleError(Reason.CORRUPT, str(error)) from None


def _first_page(data: bytes) -> Directory:
    page = next(directories(data), None)
    if page is None:
        raise BadTagsError("no directory")
    return page


def _pages(data: bytes) -> Iterator[tuple[int, Directory]]:
    """The pages with their places in the chain: the first directory, and those that are no reduced copy or mask.

    A directory that contradicts itself ends them.
    """
    for place, directory in enumerate(islice(directories(data), _MAX_PAGES)):
        try:
            page = place == 0 or is_page(directory.integer(_SUBFILE, 0))
        except BadTagsError:
            return
        if page:
            yield place, directory


def is_page(subfile_type: int) -> bool:
    """Whether a directory of this NewSubfileType (TIFF 6.0, section 8), other than the first, is a page."""
    return not subfile_type & (_REDUCED | _MASK)


def _page(data: bytes, number: int) -> tuple[int, Directory]:
    """A page and its place in the chain of directories."""
    if number == 0:
        return 0, _first_page(data)
    found = next(islice(_pages(data), number, None), None)
    if found is None:
        raise SampleError(Reason.TRUNCATED, f"no page {number}")
    return found


def read_header(data: bytes, frame: int = 0) -> Header:
    """Size, orientation and profile of a page, and the number of pages.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``bad_header``, or ``unsupported`` for a camera's raw file,
            whose first page is only a preview.
    """
    with _tag_errors():
        _, page = _page(data, frame)
        if (page.integer(_SUBFILE, 0) & _REDUCED and _SUB_DIRECTORIES in page.tags) or _DNG in page.tags:
            raise SampleError(Reason.UNSUPPORTED, "camera raw: the first page is a preview")
        width, height = page.integer(_WIDTH, 0), page.integer(_HEIGHT, 0)
        bits, samples = page.integer(_BITS, 1), page.integer(_SAMPLES, 1)
        if not 0 < width < 2**31 or not 0 < height < 2**31 or not 0 < bits <= 128 or samples < 1:
            raise SampleError(Reason.BAD_HEADER, f"{width} x {height}, {samples} samples of {bits} bits")
        if samples > _MAX_SAMPLES and len(page.integers(_BITS)) != samples:
            raise SampleError(Reason.CORRUPT, f"{samples} samples of {len(page.integers(_BITS))} depths")
        if samples > _MAX_SAMPLES or page.integer(_DEPTH, 1) > 1:
            raise SampleError(Reason.UNSUPPORTED, f"{samples} samples per pixel, depth {page.integer(_DEPTH, 1)}")
        orientation = page.integer(ORIENTATION, 1)
        profile = page.raw(_ICC) or None
        frames = sum(1 for _ in _pages(data))
    valid = 0 <= orientation <= 8
    return Header(
        "tiff",
        width,
        height,
        max(1, frames),
        (orientation or None) if valid and ORIENTATION in page.tags else None,
        profile,
        max(8, samples * (bits + 7) // 8),
        () if valid else (Flag.EXIF_UNREADABLE,),
    )


def _stored(data: bytes, page: Directory, place: int, as_rgb: bool = False) -> Array:
    """The page at a place in the chain as [H, W] or [H, W, C], in the file's own orientation."""
    try:
        values = attempt(lambda: imagecodecs.tiff_decode(data, place, asrgb=as_rgb))
    except SampleError as error:
        if error.reason is Reason.CORRUPT and _ends_early(page):
            raise SampleError(Reason.TRUNCATED, error.detail) from None
        raise
    if (
        values.ndim == 3
        and page.integer(_PLANAR, 1) == 2
        and not as_rgb
        and values.shape[0] == page.integer(_SAMPLES, 1)
    ):
        values = np.moveaxis(values, 0, 2)
    if values.ndim not in (2, 3) or values.shape[:2] != (page.integer(_HEIGHT, 0), page.integer(_WIDTH, 0)):
        raise SampleError(Reason.UNSUPPORTED, f"samples of shape {values.shape}")
    return values


def _ends_early(page: Directory) -> bool:
    """Whether the first strip or tile lies inside the file and a later byte of the page does not."""
    offsets = page.integers(_STRIP_OFFSETS) or page.integers(_TILE_OFFSETS)
    sizes = page.integers(_STRIP_SIZES) or page.integers(_TILE_SIZES)
    end = max((offset + size for offset, size in zip(offsets, sizes, strict=False)), default=0)
    return bool(offsets) and offsets[0] < len(page.data) < end


def _with_one(data: bytes, page: Directory, number: int) -> bytes:
    """The file with the value 1 for a tag, if it has that tag."""
    tag = page.tags.get(number)
    if tag is None:
        return data
    size = 4 if tag.kind == 4 else 2
    one = (1).to_bytes(size, "little" if page.order == "<" else "big")
    return data[: tag.offset] + one + data[tag.offset + size :]


def decode(data: bytes, header: Header) -> Samples:
    """Decodes the page that the header is of.

    White is 2^BitsPerSample - 1 (TIFF 6.0, section 4); float, signed and wider samples have no range.

    Raises:
        SampleError: ``truncated``, ``corrupt``, ``bad_header`` or ``unsupported``.
    """
    with _tag_errors():
        place, page = _page(data, header.frame)
        samples = _samples(data, place, page)
        return replace(samples, flags=(*samples.flags, *check_strips(page)))


def _samples(data: bytes, place: int, page: Directory) -> Samples:
    samples = page.integer(_SAMPLES, 1)
    photometric = page.integer(_PHOTOMETRIC, 2 if samples >= 3 else 1)
    jpeg = page.integer(_COMPRESSION, 1) == _JPEG
    if photometric == _YCBCR and not jpeg:
        # This interface of the decoder would apply a part of the orientations.
        values = _stored(_with_one(data, page, ORIENTATION), page, place, as_rgb=True)
        return Samples(values[:, :, :3], "rgb")
    if photometric == _PALETTE:
        return Samples(_coloured(_stored(data, page, place), page), "rgb")
    # Declared as grey, ink comes as it is; the decoder would convert it without the profile.
    ink = photometric == _INK and not jpeg
    values = _stored(_with_one(data, page, _PHOTOMETRIC) if ink else data, page, place)
    if jpeg and photometric in (_YCBCR, _INK):
        # The decoder has converted these to RGB(A) already.
        return Samples(values[:, :, :3], "rgb")
    if photometric not in _MODELS:
        raise SampleError(Reason.UNSUPPORTED, f"photometric interpretation {photometric}")
    model, colours = _MODELS[photometric]
    return _arrange(values, page, model, colours, photometric)


def _arrange(values: Array, page: Directory, model: Model, colours: int, photometric: int) -> Samples:
    channels = 1 if values.ndim == 2 else values.shape[2]
    if channels < colours:
        raise SampleError(Reason.BAD_HEADER, f"{channels} samples per pixel for {model}")
    extra = page.integer(_EXTRA, 0) if channels > colours else 0
    alpha = extra in (1, 2)
    if values.ndim == 3:
        values = values[:, :, : colours + alpha]
        if values.shape[2] == 1:
            values = values[:, :, 0]
    bits = page.integer(_BITS, 1)
    unsigned = values.dtype.kind in "ub" and page.integer(_FORMAT, 1) in (1, 4)
    white = (1 << bits) - 1 if unsigned and bits <= 16 else None
    if model == "lab":
        if values.dtype != np.uint8 or alpha:
            raise SampleError(Reason.UNSUPPORTED, f"CIELAB of {values.dtype}")
        # Photometric 8 has signed a and b, 9 the ICC encoding with an offset of 128.
        values = values ^ np.array([0, 128, 128], np.uint8) if photometric == 8 else values
    return Samples(values, model, white, alpha, premultiplied=extra == 1, inverted=photometric == 0)


def _coloured(indices: Array, page: Directory) -> Array:
    """Palette indices to RGB. The table holds all reds, then greens, then blues, in 16 bits."""
    table = np.array(page.integers(_COLOURS), np.uint32)
    if table.size == 0 or table.size % 3 or indices.ndim != 2 or indices.dtype.kind not in "ub":
        raise SampleError(Reason.CORRUPT, f"table of {table.size} colours for samples of {indices.dtype}")
    if table.max() > 255:
        table = (table * 255 + 32767) // 65535
    table = table.reshape(3, -1).T.astype(np.uint8)
    if int(indices.max()) >= len(table):
        raise SampleError(Reason.CORRUPT, "an index outside the table of colours")
    return np.asarray(table[indices.astype(np.intp)])


def decode_labels(data: bytes) -> Array:
    """The stored sample values, untouched: [H, W] or [H, W, C], bool as uint8.

    Raises:
        SampleError: as :func:`decode`.
    """
    with _tag_errors():
        page = _first_page(data)
        if page.integer(_COMPRESSION, 1) == _JPEG:
            raise SampleError(Reason.UNSUPPORTED, "labels in lossy JPEG compression")
        values = _stored(data, page, 0)
        check_strips(page)
    return values.astype(np.uint8) if values.dtype == np.bool_ else values
