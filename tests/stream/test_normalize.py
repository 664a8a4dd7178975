"""uint8 batches → normalised floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from shardforge.errors import UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.reader import open_dataset
from shardforge.transforms import Normalize
from tests.datasets import make_dataset, picture


@pytest.fixture(scope="module")
def batch() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), dtype=np.uint8))


def expected(batch: torch.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> np.ndarray:
    return ((batch.numpy() / 255 - np.array(mean)) / np.array(std)).transpose(0, 3, 1, 2)


MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def test_both_layouts_give_the_same_floats(batch: torch.Tensor) -> None:
    out = Normalize(MEAN, STD)(batch)
    assert out.shape == (4, 3, 5, 6)
    assert out.dtype == torch.float32
    assert out.is_contiguous()
    np.testing.assert_allclose(out.numpy(), expected(batch, MEAN, STD), atol=1e-6)
    assert torch.equal(Normalize(MEAN, STD)(batch.permute(0, 3, 1, 2)), out)
    assert torch.equal(Normalize(MEAN, STD)(batch.permute(0, 3, 1, 2).contiguous()), out)


def test_channels_last_is_a_matter_of_memory_only(batch: torch.Tensor) -> None:
    out = Normalize(MEAN, STD, memory_format=torch.channels_last)(batch)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(out, Normalize(MEAN, STD)(batch))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_rounded_once_at_the_end(batch: torch.Tensor, dtype: torch.dtype) -> None:
    out = Normalize(MEAN, STD, dtype=dtype)(batch)
    assert torch.equal(out, Normalize(MEAN, STD)(batch).to(dtype))


def test_autocast_changes_nothing(batch: torch.Tensor) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = Normalize(MEAN, STD)(batch)
    assert out.dtype == torch.float32
    assert torch.equal(out, Normalize(MEAN, STD)(batch))


def test_the_training_split_becomes_standard(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"train": [9, 8], "val": [4]}, format="png")
    images = torch.from_numpy(np.stack([picture(number) for number in range(17)]))
    for source in (tmp_path, str(tmp_path), open_dataset(tmp_path), ShardDataset(tmp_path, split="val")):
        out = Normalize.from_dataset(source)(images)
        assert out.mean((0, 2, 3)).tolist() == pytest.approx([0] * 3, abs=1e-4)
        assert out.std((0, 2, 3), correction=0).tolist() == pytest.approx([1] * 3, abs=1e-4)


def test_grey_images_and_constant_channels(tmp_path: Path) -> None:
    make_dataset(tmp_path, channels=1, format="png", pixels=lambda _: np.full((4, 4, 1), 51, np.uint8))
    out = Normalize.from_dataset(tmp_path)(torch.full((2, 4, 4, 1), 51, dtype=torch.uint8))
    assert out.shape == (2, 1, 4, 4)
    assert out.abs().max() < 1e-6


def test_a_checkpoint_carries_the_numbers() -> None:
    other = Normalize((0.0,) * 3, (1.0,) * 3)
    other.load_state_dict(Normalize(MEAN, STD).state_dict())
    assert other.mean.tolist() == pytest.approx(MEAN)


def test_images_of_other_shapes_are_refused() -> None:
    for shape in ((5, 6, 3), (4, 5, 6, 1), (4, 2, 5, 6)):
        with pytest.raises(UsageError, match="shape"):
            Normalize(MEAN, STD)(torch.zeros(shape, dtype=torch.uint8))


def test_a_dataset_without_statistics_is_refused(tmp_path: Path) -> None:
    make_dataset(tmp_path, {"val": [3]})
    with pytest.raises(UsageError, match="statistics"):
        Normalize.from_dataset(tmp_path)


def test_volumes_keep_their_axes_behind_the_channels() -> None:
    volumes = torch.arange(2 * 3 * 4 * 5, dtype=torch.int16).reshape(2, 3, 4, 5, 1)
    out = Normalize([10.0], [4.0], white=1)(volumes)
    assert out.shape == (2, 1, 3, 4, 5)
    assert torch.equal(out[:, 0], (volumes[..., 0].float() - 10) / 4)
    assert torch.equal(Normalize([10.0], [4.0], white=1)(volumes.movedim(-1, 1)), out)
