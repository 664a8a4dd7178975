"""Datasets of 16-bit images: what is stored, what readers get, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from shardforge.stream.dataset import ShardDataset
from shardforge.transforms import CenterCrop, Normalize, RandomHorizontalFlip, RandomResizedCrop
from tests.compile.test_build import payloads, rows
from tests.pictures import picture, run, write_picture


def deep(seed: int, channels: int = 3) -> np.ndarray:
    """[36, 48, channels], faint in the first half of the dataset: all its values in 3 of 256 high bytes."""
    most = 700 if seed % 2 else 65536
    return np.random.default_rng(seed).integers(0, most, (36, 48, channels), dtype=np.uint16)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("raw")
    for i in range(6):
        (root / "deep").mkdir(exist_ok=True)
        assert cv2.imwrite(str(root / "deep" / f"{i}.{'png' if i < 3 else 'tif'}"), deep(i)[..., ::-1])
    for i in range(4):
        write_picture(root / "shallow" / f"{i}.png", i)
    return root


def original(source: str) -> np.ndarray:
    number = int(Path(source).stem)
    return deep(number) if source.startswith("deep") else picture(number).astype(np.uint16) * 257


def grey(pixels: np.ndarray) -> np.ndarray:
    return pixels @ np.array([0.299, 0.587, 0.114])


OPTIONS = {"depth": 16, "resize": "none", "shard_samples": 4, "quiet": True}


@pytest.mark.parametrize("form", ["png", "npy"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_stored_value_is_the_source_s(raw: Path, tmp_path: Path, form: str, channels: int) -> None:
    out = tmp_path / "out"
    shardforge.build(raw, out, format=form, channels=channels, **OPTIONS)  # type: ignore[arg-type]
    assert verify(out).damage == ()
    stored = payloads(out, form)
    assert len(stored) == 10
    for source, payload in stored.items():
        if form == "npy":
            values = np.load(io.BytesIO(payload), allow_pickle=False)
        else:
            values = cv2.imdecode(np.frombuffer(payload, np.uint8), cv2.IMREAD_UNCHANGED)
            values = values[..., None] if channels == 1 else values[..., ::-1]
        assert values.dtype == np.uint16
        wanted = original(source)
        if channels == 3:
            assert np.array_equal(values, wanted)
        else:
            assert np.abs(values[..., 0] - grey(wanted)).max() <= 1.1
    manifest = Manifest.read(out)
    assert (manifest.recipe["depth"], manifest.depth, manifest.channels) == (16, 16, channels)
    opened = shardforge.open(out)
    sources = opened.splits["train"].table(["source"])["source"].to_pylist()
    for sample, source in zip(opened.splits["train"], sources, strict=True):
        assert sample["image"].dtype == np.uint16
        if channels == 3:
            assert np.array_equal(sample["image"], original(source))


def test_deep_png_is_passed_through_and_the_rest_is_flagged(raw: Path, tmp_path: Path) -> None:
    shardforge.build(raw, tmp_path / "out", format="png", **OPTIONS)  # type: ignore[arg-type]
    flags = {row["source"]: set(row["flags"]) for row in rows(tmp_path / "out")}
    assert {name for name, found in flags.items() if "passed_through" in found} == {f"deep/{i}.png" for i in range(3)}
    assert {name for name, found in flags.items() if "depth_raised" in found} == {
        f"shallow/{i}.png" for i in range(4)
    }
    assert not any("depth_reduced" in found for found in flags.values())


def test_statistics_are_those_of_the_values_and_normalise_them(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shardforge.build(raw, out, format="png", **OPTIONS)  # type: ignore[arg-type]
    pixels = np.concatenate([original(source).reshape(-1, 3) for source in payloads(out, "png")])
    stats = Manifest.read(out).splits["train"].stats
    assert stats is not None
    np.testing.assert_allclose(stats.mean, pixels.mean(0) / 65535, rtol=1e-12)
    np.testing.assert_allclose(stats.std, pixels.std(0) / 65535, rtol=1e-9)
    counts = np.stack([np.bincount(pixels[:, c] >> 8, minlength=256) for c in range(3)])
    np.testing.assert_array_equal(np.array(stats.histogram), counts)
    normalize = Normalize.from_dataset(out)
    (batch,) = ShardDataset(out, batch_size=10, shuffle=False)
    assert batch["image"].dtype == torch.uint16
    for images in (batch["image"], batch["image"].to(torch.int32), batch["image"].float()):
        result = normalize(images)
        assert result.mean((0, 2, 3)).tolist() == pytest.approx([0] * 3, abs=1e-4)
        assert result.std((0, 2, 3), correction=0).tolist() == pytest.approx([1] * 3, abs=1e-4)


def test_16_bit_images_go_through_transforms_loaders_and_worker_processes(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shardforge.build(raw, out, format="npy", **OPTIONS)  # type: ignore[arg-type]
    steps = [RandomResizedCrop(24, scale=(0.5, 1)), RandomHorizontalFlip(), CenterCrop(20)]
    loader = shardforge.ShardLoader(out, batch_size=5, workers=1, transform=steps, tail="mask")
    with loader:
        found = [batch["image"] for batch in loader]
    assert [(images.dtype, tuple(images.shape)) for images in found] == [(torch.uint16, (5, 20, 20, 3))] * 2
    assert max(int(images.to(torch.int32).max()) for images in found) > 60000
    singles = DataLoader(ShardDataset(out, shuffle=False, fields=("image",)), batch_size=2)
    assert next(iter(singles))["image"].dtype == torch.uint16


def test_resizing_and_padding_keep_16_bits(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shardforge.build(raw, out, format="png", depth=16, size=24, resize="pad", background=(1, 2, 3), quiet=True)
    for sample in shardforge.open(out).splits["train"]:
        assert sample["image"].shape == (24, 24, 3)
        assert sample["image"][0, 0].tolist() == [257, 514, 771]
        assert len(np.unique(sample["image"])) > 256
    assert verify(out).damage == ()


def test_the_same_bytes_for_any_number_of_workers(raw: Path, tmp_path: Path) -> None:
    from tests.pictures import digest_tree

    for workers in (1, 2):
        shardforge.build(
            raw,
            tmp_path / str(workers),
            format="png",
            depth=16,
            size=20,
            shard_samples=3,
            workers=workers,
            quiet=True,
        )
    assert digest_tree(tmp_path / "1") == digest_tree(tmp_path / "2")


def test_verify_notices_changed_sums(raw: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    out = tmp_path / "out"
    shardforge.build(raw, out, format="png", **OPTIONS)  # type: ignore[arg-type]
    manifest = Manifest.read(out)
    split = manifest.splits["train"]
    assert split.stats is not None
    assert split.stats.sums is not None
    sums = ((split.stats.sums[0][0] + 1, split.stats.sums[0][1]), *split.stats.sums[1:])
    changed = replace(split, stats=replace(split.stats, sums=sums))
    replace(manifest, splits={"train": changed}).write(out / "dataset.json")
    assert any("sums" in damage.what for damage in verify(out).damage)


@pytest.mark.parametrize("form", ["jpg", "webp", "keep"])
def test_lossy_formats_cannot_hold_16_bits(raw: Path, tmp_path: Path, form: str) -> None:
    with pytest.raises(UsageError, match="depth: 16 bits need format png or npy"):
        shardforge.build(raw, tmp_path / "out", depth=16, format=form, quiet=True)
    result = run("build", raw, tmp_path / "out", "--depth", 16)
    assert result.returncode == 2
    assert "png or npy" in result.stderr
    assert run("build", raw, tmp_path / "out", "--depth", 12, "--format", "png").returncode == 2
