"""Windows at training time are the build's."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shardforge.dicom.choose import choose
from shardforge.dicom.facts import FrameMeaning, VoiFunction
from shardforge.dicom.facts import Window as Setting
from shardforge.dicom.render import render
from shardforge.dicom.voi import VoiTables, brightness, levels
from shardforge.dicom.windows import VoiChoice, parse_windows
from shardforge.errors import UsageError
from shardforge.stream.dataset import ShardDataset
from shardforge.stream.loader import ShardLoader
from shardforge.transforms import Window
from tests.datasets import make_dataset

ALL = np.arange(-32768, 32768).astype(np.int16).reshape(256, 256, 1)


def built(text: str, values: np.ndarray, voi: VoiChoice = "auto", inverted: bool = False) -> np.ndarray:
    """What a build stores of modality values [H, W, 1]."""
    choices = choose(parse_windows(text), FrameMeaning(), values[..., 0], None, function=voi)
    vois = [choice.voi for choice in choices]
    return render(values[..., 0], None, vois, VoiTables(), inverted=inverted).pixels


@pytest.mark.parametrize("text", ["lung", "brain,subdural,bone", "pe", "-600.5/1500.25,0.5/0.8,40/1,40/2"])
@pytest.mark.parametrize("voi", ["auto", "linear", "linear_exact", "sigmoid"])
@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_the_pixels_are_the_builds(text: str, voi: VoiChoice, inverted: bool, dtype: str) -> None:
    # Every value where a table answers; where the formula does, enough of them.
    values = ALL if dtype == "int16" else ALL[::31, ::3].astype(dtype)
    window, expected = Window(text, voi=voi, inverted=inverted), built(text, values, voi, inverted)
    out = window(values)
    assert out.dtype == np.uint8
    assert np.array_equal(out, expected)
    tensor = window(torch.from_numpy(values))
    assert tensor.dtype == torch.uint8
    # torch's exp is not always NumPy's to the bit; int16 goes through the build's own table.
    close = 1 if voi == "sigmoid" and dtype != "int16" else 0
    assert np.abs(tensor.numpy().astype(int) - expected).max() <= close


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.builds(
            Setting,
            st.integers(-32_000, 32_000).map(lambda number: number / 8),
            st.integers(1, 40_000).map(lambda number: number / 8),
            st.sampled_from(["LINEAR", "LINEAR_EXACT"]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_fractions_are_the_builds_too(shown: list[Setting], inverted: bool) -> None:
    values = (np.random.default_rng(0).normal(0, 900, (9, 11, 1))).astype(np.float32)
    values[0, 0], values[0, 1], values[0, 2] = np.nan, np.inf, -np.inf
    expected = render(values[..., 0], None, shown, VoiTables(), inverted=inverted).pixels
    window = Window(shown, inverted=inverted)
    assert np.array_equal(window(values), expected)
    assert np.array_equal(window(torch.from_numpy(values)).numpy(), expected)


FUNCTIONS: tuple[VoiFunction, ...] = ("LINEAR", "LINEAR_EXACT", "SIGMOID")


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("inverted", [False, True])
def test_floats_are_the_brightness_itself(function: VoiFunction, inverted: bool) -> None:
    setting = Setting(40, 400, function)
    window = Window([setting], dtype="float32", inverted=inverted)
    expected = brightness(ALL, setting, inverted=inverted).astype(np.float32)
    for values in (ALL, ALL.astype(np.float32)):
        assert np.array_equal(window(values), expected)
        assert window(values).dtype == np.float32
        tensor = window(torch.from_numpy(values))
        assert tensor.dtype == torch.float32
        assert np.allclose(tensor.numpy(), expected, atol=1e-7)


def test_neighbouring_slices_get_all_windows_each() -> None:
    stack = np.random.default_rng(0).integers(-1024, 2000, (4, 5, 3)).astype(np.int16)
    window = Window("lung,brain")
    expected = [levels(stack[..., slice_], setting) for slice_ in range(3) for setting in window.windows]
    assert np.array_equal(window(stack), np.stack(expected, -1))
    batch = np.stack([stack, stack[::-1]])
    for found in (window(batch), window(torch.from_numpy(batch)).numpy()):
        assert found.shape == (2, 4, 5, 6)
        assert np.array_equal(found, np.stack([window(image) for image in batch]))


def test_channels_may_stand_first() -> None:
    batch = np.random.default_rng(0).integers(-1024, 2000, (2, 4, 5, 3)).astype(np.int16)
    first = np.ascontiguousarray(batch.transpose(0, 3, 1, 2))
    expected = Window("lung,brain")(batch).transpose(0, 3, 1, 2)
    window = Window("lung,brain", axis=1)
    assert np.array_equal(window(first), expected)
    assert np.array_equal(window(torch.from_numpy(first)).numpy(), expected)
    assert np.array_equal(window(torch.from_numpy(batch).permute(0, 3, 1, 2)).numpy(), expected)


def test_a_window_survives_the_way_to_a_worker() -> None:
    window = Window("lung", inverted=True)
    window(torch.from_numpy(ALL))
    assert np.array_equal(pickle.loads(pickle.dumps(window))(ALL), window(ALL))  # noqa: S301
    assert "LINEAR" in repr(window)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int64"])
def test_pictures_are_refused(dtype: str) -> None:
    image = np.zeros((2, 2, 1), dtype)
    with pytest.raises(UsageError, match="modality values"):
        Window("lung")(image)
    with pytest.raises(UsageError, match="modality values"):
        Window("lung")(torch.from_numpy(image))


@pytest.mark.parametrize(
    "windows", ["lungs", "header", "lung,percentile", "none", "40/0", (), [Setting(40, 0)], ["lung"]]
)
def test_windows_that_only_a_build_can_find_are_refused(windows: object) -> None:
    with pytest.raises(UsageError):
        Window(windows)  # type: ignore[arg-type]


def test_other_wishes_are_refused() -> None:
    with pytest.raises(UsageError, match="float32"):
        Window("lung", dtype="float16")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="sigmoid"):
        Window("lung", voi="cosine")  # type: ignore[arg-type]


def test_a_reader_windows_stored_modality_values(tmp_path: Path) -> None:
    def slice_of(number: int) -> np.ndarray:
        return np.random.default_rng(number).integers(-1024, 3000, (8, 9, 1)).astype(np.int16)

    make_dataset(tmp_path, {"train": [3]}, channels=1, format="npy", pixels=slice_of)
    window = Window("brain,subdural,bone")
    samples = list(ShardDataset(tmp_path, split="train", shuffle=False, transform=window))
    assert len(samples) == 3
    for number, sample in enumerate(samples):
        assert np.array_equal(np.asarray(sample["image"]), built("brain,subdural,bone", slice_of(number)))
    (batch,) = ShardLoader(tmp_path, split="train", shuffle=False, batch_size=3)
    assert batch["image"].dtype == torch.int16
    assert np.array_equal(window(batch["image"]).numpy(), np.stack([np.asarray(s["image"]) for s in samples]))
