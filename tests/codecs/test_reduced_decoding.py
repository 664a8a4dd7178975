"""JPEGs decoded at reduced scale: close to full decoding, right at every edge, and as strict about damage."""

from __future__ import annotations

import math
import struct

import numpy as np
import numpy.typing as npt
import pytest
import simplejpeg
from PIL import Image
from sklearn.datasets import load_sample_images

from shardforge.codecs.decode import decode
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.geometry.orientation import apply_orientation
from shardforge.geometry.resize import place, resize_image

Pixels = npt.NDArray[np.uint8]

MARGIN = 2.25


def photos(count: int) -> list[Pixels]:
    """Crops of real photographs in odd sizes."""
    images, draw = load_sample_images().images, np.random.default_rng(7)
    crops = []
    for number in range(count):
        height, width = int(draw.integers(300, 428)), int(draw.integers(300, 641))
        top, left = int(draw.integers(0, 428 - height)), int(draw.integers(0, 641 - width))
        crops.append(np.ascontiguousarray(images[number % 2][top : top + height, left : left + width]))
    return crops


def oriented(data: bytes, orientation: int) -> bytes:
    """A JPEG with an EXIF segment put in front."""
    entry = struct.pack(">HHIHH", 0x0112, 3, 1, orientation, 0)
    exif = b"Exif\0\0" + b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]


def jpeg(pixels: Pixels) -> bytes:
    return bytes(simplejpeg.encode_jpeg(pixels, quality=92, colorsubsampling="420"))


def small(data: bytes, size: int, margin: float = MARGIN) -> tuple[Pixels, int]:
    """The picture with its short side at ``size``, decoded with no more than ``margin`` times that (0: in full)."""

    def needed(width: int, height: int) -> tuple[int, int]:
        placement = place(width, height, mode="shortest", size=size, enlarge=False)
        return math.ceil(margin * placement.inner_width), math.ceil(margin * placement.inner_height)

    picture = decode(data, channels=3, background=(0, 0, 0), limits=Limits(), needed=needed if margin else None)
    placement = place(picture.source_width, picture.source_height, mode="shortest", size=size, enlarge=False)
    return resize_image(picture.pixels, placement, "lanczos", (0, 0, 0), picture.box), picture.reduction


def psnr(one: Pixels, two: Pixels) -> float:
    error = np.mean((one.astype(np.float64) - two.astype(np.float64)) ** 2)
    return float(10 * np.log10(255**2 / error)) if error else 99.0


def large_photo(seed: int) -> Pixels:
    """Real photographs side by side at their own scale, some mirrored, cut to an odd size."""
    images, draw = load_sample_images().images, np.random.default_rng(seed)
    rows = [
        np.concatenate([images[draw.integers(2)][:, :: draw.choice([-1, 1])] for _ in range(4)], 1) for _ in range(6)
    ]
    height, width = int(draw.integers(1160, 2562)), int(draw.integers(2140, 2561))
    return np.ascontiguousarray(np.concatenate(rows, 0)[:height, :width])


def test_fifty_photographs_lose_nothing_that_can_be_seen() -> None:
    found = []
    for seed in range(50):
        data = jpeg(large_photo(seed))
        reduced, reduction = small(data, 256)
        full = np.asarray(Image.fromarray(simplejpeg.decode_jpeg(data)).resize(reduced.shape[1::-1], 1))
        found.append((psnr(reduced, full), reduction))
    assert min(found)[0] >= 45
    assert {reduction for _, reduction in found} == {2, 4}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("size", [(203, 301), (205, 299), (207, 297)])
def test_edges_are_right_for_every_orientation(orientation: int, size: tuple[int, int]) -> None:
    """A ramp tells shifts: half a pixel of the source would be half a level at every place."""
    height, width = size
    y, x = np.mgrid[0:height, 0:width]
    ramp = (
        np.stack([x * 255 / width, y * 255 / height, (x + y) * 255 / (width + height)], -1).round().astype(np.uint8)
    )
    data = oriented(simplejpeg.encode_jpeg(ramp, quality=100, colorsubsampling="444"), orientation)
    reduced, reduction = small(data, 22)
    full, whole = small(data, 22, 0)
    assert (reduction, whole) == (4, 1)
    assert reduced.shape == full.shape
    assert np.abs(reduced.astype(int) - full.astype(int)).max() <= 2
    upright = apply_orientation(ramp, orientation)
    assert np.abs(full.astype(int).mean((0, 1)) - upright.astype(int).mean((0, 1))).max() < 1


def test_nothing_is_reduced_below_what_is_needed() -> None:
    data = jpeg(photos(1)[0])
    for wanted in (150, 100, 75, 40, 20, 10, 1):
        picture = decode(
            data, channels=3, background=(0, 0, 0), limits=Limits(), needed=lambda w, h, n=wanted: (n, n)
        )
        height, width = picture.pixels.shape[:2]
        assert min(height, width) >= wanted
        assert picture.decoder == ("simplejpeg" if picture.reduction == 1 else f"simplejpeg 1/{picture.reduction}")


@pytest.mark.parametrize("part", [0.5, 0.7, 0.95])
def test_truncation_is_found_at_every_scale(part: float) -> None:
    data = jpeg(photos(1)[0])
    cut = data[: int(len(data) * part)]
    for size in (200, 60, 20):
        with pytest.raises(SampleError, match="truncated"):
            small(cut, size)


def test_damage_in_the_middle_is_judged_the_same_at_every_scale() -> None:
    data, draw = jpeg(photos(1)[0]), np.random.default_rng(3)
    for _ in range(40):
        broken = bytearray(data)
        place_ = int(draw.integers(len(data) // 3, len(data) - 200))
        broken[place_ : place_ + 40] = draw.integers(0, 256, 40, dtype=np.uint8).tobytes()
        judged = set()
        for size in (250, 60, 20):
            try:
                small(bytes(broken), size)
                judged.add("kept")
            except SampleError as error:
                judged.add(str(error.reason))
        assert len(judged) == 1
