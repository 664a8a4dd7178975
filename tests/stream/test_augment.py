"""Training-time transforms."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from shardforge.errors import UsageError
from shardforge.stream.pipeline import generator_at
from shardforge.stream.resizing import resize
from shardforge.transforms import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, Resize
from tests.datasets import picture


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(7, 9), (64, 64), (100, 20), (20, 100)])
def test_crops_have_the_size_asked_for(size: tuple[int, int], channels: int) -> None:
    crop = RandomResizedCrop(size)
    for place in range(50):
        out = crop(picture(1, (40, 60), channels), generator=generator_at(0, 0, place))
        assert out.shape == (*size, channels)
        assert out.dtype == np.uint8
        assert out.flags.c_contiguous


def test_crops_cover_the_range_of_areas_and_ratios() -> None:
    crop = RandomResizedCrop(8, scale=(0.1, 0.4), ratio=(0.5, 2))
    boxes = np.array([crop.box(300, 300, generator_at(0, 0, place).random(crop.draws)) for place in range(3000)])
    top, left, height, width = boxes.T
    share, ratio = height * width / 90_000, width / height
    assert 0.09 < share.min() < 0.12
    assert 0.39 < share.max() < 0.41
    # Every crop fits, so both ranges are covered evenly.
    assert share.mean() == pytest.approx(0.25, abs=0.01)
    assert np.median(np.log(ratio)) == pytest.approx(0, abs=0.05)
    assert 0.48 < ratio.min() < 0.52
    assert 1.9 < ratio.max() < 2.1
    assert top.min() == left.min() == 0
    assert (top + height).max() == 300
    assert (left + width).max() == 300


@pytest.mark.parametrize(("shape", "box"), [((10, 100), (0, 43, 10, 13)), ((100, 10), (43, 0, 13, 10))])
def test_a_picture_too_long_for_any_crop_gives_its_middle(shape: tuple[int, int], box: tuple[int, ...]) -> None:
    assert RandomResizedCrop(8, scale=(1, 1)).box(*shape, generator_at(0, 0, 0).random(40)) == box


def test_a_flip_mirrors_left_and_right() -> None:
    image = picture(2)
    assert np.array_equal(RandomHorizontalFlip(1)(image, generator=generator_at(0, 0, 0)), image[:, ::-1])
    assert np.array_equal(RandomHorizontalFlip(0)(image, generator=generator_at(0, 0, 0)), image)
    flips = [
        not np.array_equal(RandomHorizontalFlip()(image, generator=generator_at(0, 0, p)), image) for p in range(1000)
    ]
    assert 430 < sum(flips) < 570


def test_shrinking_takes_the_mean_and_growing_interpolates() -> None:
    image = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    means = image.reshape(8, 4, 12, 4, 3).mean(axis=(1, 3))
    assert np.abs(resize(image, 8, 12) - means).max() <= 0.51
    stripes = np.tile(np.array([[0], [255]], np.uint8), (32, 64))[..., None]
    assert np.abs(resize(stripes, 16, 128).astype(int) - 127.5).max() <= 0.51
    assert np.array_equal(resize(np.full((3, 3, 1), 9, np.uint8), 20, 5), np.full((20, 5, 1), 9))
    ramp = np.arange(0, 250, 10, dtype=np.uint8)[None, :, None].repeat(2, 0)
    assert (np.diff(resize(ramp, 2, 100)[0, :, 0].astype(int)) >= 0).all()


def test_one_number_is_the_shorter_side() -> None:
    assert Resize(20)(picture(3, (40, 60))).shape == (20, 30, 3)
    assert Resize(20)(picture(3, (60, 40))).shape == (30, 20, 3)
    assert Resize((20, 33))(picture(3, (60, 40), 1)).shape == (20, 33, 1)


def test_the_middle_is_cropped_or_surrounded_by_zeros() -> None:
    image = picture(4, (10, 20))
    assert np.array_equal(CenterCrop((4, 6))(image), image[3:7, 7:13])
    padded = CenterCrop(16)(image)
    assert padded.shape == (16, 16, 3)
    assert np.array_equal(padded[3:13], image[:, 2:18])
    assert padded[:3].max() == padded[13:].max() == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomResizedCrop(0),
        lambda: RandomResizedCrop(8, scale=(0, 1)),
        lambda: RandomResizedCrop(8, scale=(0.5, 0.1)),
        lambda: RandomResizedCrop(8, ratio=(2, 1)),
        lambda: RandomHorizontalFlip(2),
        lambda: Resize((0, 4)),
        lambda: CenterCrop(-1),
    ],
)
def test_senseless_settings_are_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]


def _textured(height: int, width: int, channels: int) -> np.ndarray:
    """Detail down to a few pixels, as of a photograph."""
    noise = np.random.default_rng(4).normal(0, 60, (height, width, channels))
    kernel = np.array([1, 2, 1]) / 4
    for axis in (0, 1):
        noise = np.apply_along_axis(lambda line: np.convolve(line, kernel, "same"), axis, noise)
    return (noise * 2 + 128).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize(("across", "down"), [(1.45, 1.1), (1.5, 1.5), (1.7, 1.0), (1.0, 1.8), (2.0, 2.0)])
@pytest.mark.parametrize("channels", [1, 3])
def test_between_is_as_the_antialiased_linear_kernel(across: float, down: float, channels: int) -> None:
    image = _textured(240, 300, channels)
    height, width = round(240 / down), round(300 / across)
    squeezed = image if channels == 3 else image[:, :, 0]
    pillow = np.asarray(Image.fromarray(squeezed).resize((width, height), Image.Resampling.BILINEAR), float)
    sampled = cv2.resize(squeezed, (width, height), interpolation=cv2.INTER_LINEAR)

    def difference(found: np.ndarray) -> float:
        return float(np.sqrt(((found.reshape(pillow.shape) - pillow) ** 2).mean()))

    assert difference(resize(image, height, width)) < 0.6 * difference(sampled)
    out = np.zeros((height, width, channels), np.uint8)
    assert resize(image, height, width, out) is out
    assert np.array_equal(out, resize(image, height, width))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
@pytest.mark.parametrize("size", [(30, 40), (20, 20), (15, 70), (5, 5)])
def test_what_is_flat_stays_so(dtype: type, size: tuple[int, int]) -> None:
    flat = np.full((30, 40, 3), 201, dtype)
    assert np.array_equal(resize(flat, *size), np.full((*size, 3), 201, dtype))
