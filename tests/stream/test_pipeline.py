"""Transforms fused with decoding."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from shardforge.errors import UsageError
from shardforge.stream.augment import Transform
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.pipeline import ImagePipeline, generator_at, steps_of
from shardforge.transforms import CenterCrop, Pad, RandomHorizontalFlip, RandomResizedCrop, Resize
from tests.datasets import make_dataset, picture


def run(steps: list, payload: bytes, numbers: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """The result, and the sizes at which the picture was decoded."""
    sizes = []

    def decode(reduce, writable):  # type: ignore[no-untyped-def]
        height, width, *_ = simplejpeg.decode_jpeg_header(payload)
        factor = 1 if reduce is None else reduce(height, width)
        image = simplejpeg.decode_jpeg(payload, min_height=-(-height // factor), min_width=-(-width // factor))
        sizes.append(image.shape[:2])
        return image

    pipeline = ImagePipeline(steps_of(steps), 0)
    return pipeline.run(decode, numbers, lambda: generator_at(0, 0, 0)), sizes


@pytest.fixture(scope="module")
def large() -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture(3, (1000, 1600))).save(file, "JPEG", quality=95)
    return file.getvalue()


@pytest.mark.parametrize(
    ("size", "decoded"), [(100, (125, 200)), (126, (250, 400)), (260, (500, 800)), (600, (1000, 1600))]
)
def test_a_picture_is_decoded_no_larger_than_needed_and_never_too_small(
    large: bytes, size: int, decoded: tuple[int, int]
) -> None:
    image, sizes = run([Resize(size)], large, np.empty(0))
    assert sizes == [decoded]
    assert image.shape == (size, round(size * 1.6), 3)


def test_a_crop_of_a_reduced_picture_is_the_crop_of_the_whole(large: bytes) -> None:
    whole = np.asarray(Image.open(io.BytesIO(large)))
    crop = RandomResizedCrop(64)
    reduced = 0
    for place in range(40):
        numbers = generator_at(0, 0, place).random(crop.draws)
        image, sizes = run([crop], large, numbers)
        top, left, height, width = crop.box(1000, 1600, numbers)
        reduced += sizes[0] != (1000, 1600)
        assert min(height * sizes[0][0] / 1000, width * sizes[0][1] / 1600) >= 63.5
        expected = Image.fromarray(whole[top : top + height, left : left + width]).resize(
            (64, 64), Image.Resampling.BOX
        )
        assert np.abs(image.astype(int) - np.asarray(expected)).mean() < 4
    assert reduced > 20


def test_numbers_depend_on_seed_epoch_step_and_place_alone() -> None:
    steps = steps_of([RandomResizedCrop(8), RandomHorizontalFlip(), CenterCrop(8), RandomHorizontalFlip()])
    pipeline = ImagePipeline(steps, 3)
    places = np.array([0, 5, 10**9, 2**40])
    numbers = pipeline.numbers(2, places)
    assert numbers.shape == (4, 42)
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert np.array_equal(pipeline.numbers(2, places[::-1]), numbers[::-1])
    assert len(np.unique(numbers)) == numbers.size
    assert not np.array_equal(pipeline.numbers(3, places), numbers)
    assert not np.array_equal(ImagePipeline(steps, 4).numbers(2, places), numbers)


def test_draws_are_uniform_over_places() -> None:
    numbers = ImagePipeline(steps_of([RandomResizedCrop(8), RandomHorizontalFlip()]), 0).numbers(0, np.arange(20_000))
    for column in numbers.T:
        counts = np.bincount((column * 20).astype(int), minlength=20)
        # Chi-square with 19 degrees of freedom: 60 has p = 4e-6.
        assert ((counts - 1000) ** 2 / 1000).sum() < 60
    assert np.abs(np.corrcoef(numbers.T) - np.eye(41)).max() < 0.04


def test_a_transform_called_by_hand_needs_a_generator() -> None:
    with pytest.raises(UsageError, match="generator="):
        RandomHorizontalFlip()(picture(1))
    assert CenterCrop(8)(picture(1)).shape == (8, 8, 3)


def test_pad_surrounds_with_its_value() -> None:
    image = picture(1, (10, 20))
    padded = Pad((16, 24), fill=(1, 2, 3))(image)
    assert np.array_equal(padded[3:13, 2:22], image)
    assert (padded[0] == [1, 2, 3]).all()
    assert (padded[:, -1] == [1, 2, 3]).all()
    assert Pad(24)(image).max() == image.max()
    with pytest.raises(UsageError, match="Resize or crop"):
        Pad(16)(image)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16, np.float32])
@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_of_every_kind_go_through_all_transforms(tmp_path: Path, dtype: type, channels: int) -> None:
    low = -2000 if dtype is np.int16 else 0

    def pixels(number: int) -> np.ndarray:
        return (picture(number, (40, 60), channels).astype(np.int32) * 8 + low).clip(low, None).astype(dtype)

    make_dataset(tmp_path, format="npy", channels=channels, pixels=pixels)
    steps = [
        RandomResizedCrop(24, scale=(1, 1), ratio=(1.5, 1.5)),
        RandomHorizontalFlip(1),
        Resize((16, 24)),
        Pad(32, low),
    ]
    batch = next(iter(ShardDataset(tmp_path, batch_size=4, transform=steps, fields=("image", "key"))))
    assert batch["image"].shape == (4, 32, 32, channels)
    assert batch["image"].numpy().dtype == dtype
    for image, key in zip(batch["image"].numpy(), batch["key"], strict=True):
        whole = pixels(int(key))
        assert (image[:8] == dtype(low)).all()
        middle = image[8:24, 4:28].astype(float)
        assert abs(middle.mean() - whole.mean()) < 0.05 * (whole.max() - low) + 1
        # Flipped once: brightness left and right as in the mirrored picture.
        halves = whole[:, ::-1].astype(float)
        assert np.sign(middle[:, :12].mean() - middle[:, 12:].mean()) == np.sign(
            halves[:, :30].mean() - halves[:, 30:].mean()
        )


def test_the_bytes_of_a_shard_cannot_be_changed_by_a_transform(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [6]}, format="npy")
    before = (tmp_path / "train-000000.tar").read_bytes()

    def spoil(image: np.ndarray) -> np.ndarray:
        image[:] = 0
        return image

    for steps in ([spoil], [RandomHorizontalFlip(0), spoil], [CenterCrop(32), spoil]):
        assert not next(iter(ShardDataset(tmp_path, batch_size=6, transform=steps)))["image"].any()

    def spoil_sample(sample: dict) -> dict:
        sample["image"][:] = 0
        return sample

    assert not next(iter(ShardDataset(tmp_path, batch_size=6, transform_sample=spoil_sample)))["image"].any()
    for sample in ShardDataset(tmp_path):
        sample["image"][:] = 0
    assert next(iter(ShardDataset(tmp_path, batch_size=6)))["image"].any()
    assert (tmp_path / "train-000000.tar").read_bytes() == before


class Doubled(Transform):
    """A transform of the user's own in the built-in way."""

    def apply(self, image, numbers, full=None, out=None):  # type: ignore[no-untyped-def]
        return np.repeat(image, 2, axis=0)

    def size(self, before):  # type: ignore[no-untyped-def]
        return None if before is None else (2 * before[0], before[1])


def test_the_shape_of_the_result_is_known_where_the_steps_fix_it() -> None:
    sizes = [
        ImagePipeline(steps_of(steps), 0).size
        for steps in (
            [],
            [Resize(8)],
            [Resize((8, 9))],
            [Resize(8), CenterCrop(7)],
            [CenterCrop(7), Doubled()],
            [str],
        )
    ]
    assert sizes == [None, None, (8, 9), (7, 7), (14, 7), None]
