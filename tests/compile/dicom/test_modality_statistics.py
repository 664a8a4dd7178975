"""Statistics of stored modality values are those of the values, and make batches standard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import shardforge
from shardforge.shards.manifest import Manifest
from shardforge.transforms import Normalize
from tests.dicom_made import noise, write_series


@pytest.mark.parametrize("unit", ["slice", "volume"])
def test_the_training_split_becomes_standard(tmp_path: Path, key_file: Path, unit: str) -> None:
    volume = noise(3, 5, 6, 8)
    write_series(tmp_path / "raw", volume, (0, 1, 2, 3, 4), PixelSpacing=[1, 1])
    options = {} if unit == "volume" else {"resize": "none"}
    shardforge.build(
        tmp_path / "raw",
        tmp_path / "out",
        unit=unit,
        window="none",
        format="npy",
        key_file=key_file,
        quiet=True,
        **options,
    )
    stats = Manifest.read(tmp_path / "out").splits["train"].stats
    assert stats is not None
    assert stats.mean[0] * 65535 - 32768 == pytest.approx(volume.mean(), abs=1e-6)
    assert stats.std[0] * 65535 == pytest.approx(volume.std(), abs=1e-6)
    opened = shardforge.open(tmp_path / "out")
    images = torch.stack([torch.from_numpy(np.array(opened[i]["image"])) for i in range(len(opened))])
    assert images.dtype == torch.int16
    standard = Normalize.from_dataset(tmp_path / "out")(images)
    assert standard.shape[1] == 1
    assert standard.mean().item() == pytest.approx(0, abs=1e-4)
    assert standard.std(correction=0).item() == pytest.approx(1, abs=1e-4)
