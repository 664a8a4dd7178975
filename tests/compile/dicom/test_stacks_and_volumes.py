"""Stacks and volumes of files whose positions are known: order, edges, affine, resampling, and reading them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import shardforge
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from shardforge.transforms import Window
from tests.dicom_builds import all_rows, picture_of, samples
from tests.dicom_made import COLUMN, ROW, noise, write_enhanced, write_image, write_series

Z = (-5.0, -3.0, -1.0, 1.0, 3.0)
VALUES: dict[str, Any] = {"format": "npy", "window": "none", "resize": "none", "workers": 1, "quiet": True}
VOLUMES: dict[str, Any] = {"format": "npy", "window": "none", "unit": "volume", "workers": 1, "quiet": True}


def build(source: Path, out: Path, key_file: Path, **options: Any) -> list[dict[str, Any]]:
    shardforge.build(source, out, kind="dicom", key_file=key_file, max_errors="100%", **options)
    assert verify(out).damage == ()
    return all_rows(out)


@pytest.mark.parametrize("stored", ["files", "frames"])
def test_a_stack_has_its_neighbours_as_channels_in_order_of_place(
    tmp_path: Path, key_file: Path, stored: str
) -> None:
    volume = noise(1, 5, 6, 12)
    if stored == "files":
        write_series(tmp_path / "raw", volume, Z)
    else:
        write_enhanced(tmp_path / "raw" / "enhanced", volume, Z, (3, 0, 4, 1, 2))
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, unit="stack", neighbours=2, **VALUES)
    assert sorted(row["dicom_slice_index"] for row in rows) == [0, 1, 2, 3, 4]
    for row in rows:
        index = row["dicom_slice_index"]
        wanted = [volume[min(max(index + step, 0), 4)] for step in (-2, -1, 0, 1, 2)]
        # Rows are 0.5 mm high, columns 0.25 mm wide: pixels are made square by doubling the height.
        pixels = picture_of(tmp_path / "out", row)
        assert pixels.shape == (12, 12, 5)
        assert row["dicom_position"] == pytest.approx([10, -20, Z[index]])
        for channel, plane in enumerate(wanted):
            assert pixels[:, :, channel].mean() == pytest.approx(plane.mean(), abs=12)
            others = [abs(float(pixels[:, :, channel].mean()) - float(one.mean())) for one in volume]
            assert np.argmin(others) == next(i for i in range(5) if volume[i] is plane or (volume[i] == plane).all())


def test_windows_of_a_stack_follow_slice_after_slice(tmp_path: Path, key_file: Path) -> None:
    volume = np.stack([np.full((4, 4), value, np.int16) for value in (0, 10, 20)])
    write_series(tmp_path / "raw", volume, (0, 1, 2), PixelSpacing=[1, 1])
    options: dict[str, Any] = {**VALUES, "window": "10/21,20/41", "unit": "stack"}
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, **options)
    middle = next(row for row in rows if row["dicom_slice_index"] == 1)
    # LINEAR (PS3.3 C.11.2.1.2): y = ((x - (c - 0.5)) / (w - 1) + 0.5) * 255, rounded half up.
    wanted = [
        int(min(max(((x - (c - 0.5)) / (w - 1) + 0.5) * 255, 0), 255) + 0.5)
        for x in (0, 10, 20)
        for c, w in ((10, 21), (20, 41))
    ]
    assert picture_of(tmp_path / "out", middle)[0, 0].tolist() == wanted
    assert middle["dicom_window_center"] == [10, 20] * 3


@pytest.mark.parametrize("stored", ["files", "frames"])
def test_a_volume_is_in_order_of_place_and_its_affine_leads_back(tmp_path: Path, key_file: Path, stored: str) -> None:
    volume = noise(2, 5, 6, 8)
    if stored == "files":
        write_series(tmp_path / "raw", volume, Z)
    else:
        write_enhanced(tmp_path / "raw" / "enhanced", volume, Z, (3, 0, 4, 1, 2))
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, **VOLUMES)
    found = picture_of(tmp_path / "out", row)
    assert found.dtype == np.int16
    assert np.array_equal(found, volume)
    assert (row["dicom_depth"], row["height"], row["width"], row["channels"]) == (5, 6, 8, 1)
    spacing = (row["dicom_spacing_slice"], row["dicom_spacing_row"], row["dicom_spacing_col"])
    assert spacing == (2, 0.5, 0.25)
    affine = np.reshape(row["dicom_affine"], (3, 4))
    for z, y, x in ((0, 0, 0), (4, 0, 0), (0, 5, 0), (0, 0, 7), (3, 2, 6)):
        # PS3.3 C.7.6.2.1.1: position + x · column spacing · row direction + y · row spacing · column direction.
        wanted = np.array([10, -20, Z[z]]) + 0.25 * x * np.array(ROW) + 0.5 * y * np.array(COLUMN)
        assert affine @ (z, y, x, 1) == pytest.approx(wanted, abs=1e-4)


def test_volumes_are_resampled_to_the_spacing_asked_for(tmp_path: Path, key_file: Path) -> None:
    z, y, x = np.meshgrid(np.arange(6) * 2.0, np.arange(8) * 0.5, np.arange(16) * 0.25, indexing="ij")
    ramp = (10 * z + 40 * y + 80 * x).astype(np.int16)
    write_series(tmp_path / "raw", ramp, [2.0 * i for i in range(6)])
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, spacing="1x0.5x0.5", **VOLUMES)
    found = picture_of(tmp_path / "out", row)
    assert found.shape == (12, 8, 8)
    spacing = (row["dicom_spacing_slice"], row["dicom_spacing_row"], row["dicom_spacing_col"])
    assert spacing == (1, 0.5, 0.5)
    affine = np.reshape(row["dicom_affine"], (3, 4))
    for index in ((3, 2, 2), (7, 5, 4), (9, 3, 6)):
        offset = affine @ (*index, 1) - np.array([10, -20, 0])
        wanted = 10 * offset[2] + 40 * (offset @ np.array(COLUMN)) + 80 * (offset @ np.array(ROW))
        assert found[index] == pytest.approx(wanted, abs=1)


def test_a_series_with_a_gap_fails_or_is_kept(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    source = corpus / "dicom" / "series_made_gap"
    (row,) = build(source, tmp_path / "fail", key_file, **VOLUMES)
    assert (row["status"], row["reason"]) == ("failed", "bad_geometry")
    (row,) = build(source, tmp_path / "keep", key_file, irregular="keep", **VOLUMES)
    assert row["status"] == "success"
    assert row["dicom_depth"] == 11
    assert "gaps" in row["dicom_series_findings"]


@pytest.mark.parametrize("name", ["series_made_shuffled", "series_made_flip", "series_ct"])
def test_volumes_of_the_corpus_are_in_the_order_agreed_on(
    corpus: Path, tmp_path: Path, key_file: Path, name: str
) -> None:
    facts = [json.loads(line) for line in (corpus / "expected.jsonl").read_text().splitlines()]
    slices = {
        fact["expect"]["series"]["index_by_position"]: fact["expect"]["modality"]
        for fact in facts
        if fact["path"].startswith(f"dicom/{name}/")
    }
    (row,) = build(corpus / "dicom" / name, tmp_path / "out", key_file, **VOLUMES)
    found = picture_of(tmp_path / "out", row)
    order = sorted(slices, reverse=name == "series_made_flip")
    assert [int(plane.min()) for plane in found] == [slices[index]["min"] for index in order]
    assert [float(plane.mean()) for plane in found] == pytest.approx([slices[index]["mean"] for index in order])


def test_slopes_that_differ_from_slice_to_slice_need_floats(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    source = corpus / "dicom" / "series_made_pet"
    (row,) = build(source, tmp_path / "int16", key_file, **VOLUMES)
    assert (row["status"], row["reason"]) == ("failed", "unsupported")
    (row,) = build(source, tmp_path / "float32", key_file, values="float32", **VOLUMES)
    found = picture_of(tmp_path / "float32", row)
    assert found.dtype == np.float32
    facts = [json.loads(line) for line in (corpus / "expected.jsonl").read_text().splitlines()]
    means = {
        fact["expect"]["series"]["index_by_position"]: fact["expect"]["modality"]["mean"]
        for fact in facts
        if fact["path"].startswith("dicom/series_made_pet/")
    }
    assert [float(plane.mean()) for plane in found] == pytest.approx([means[i] for i in range(6)], rel=1e-5)


@pytest.fixture(scope="module")
def two_volumes(tmp_path_factory: pytest.TempPathFactory, key_file: Path) -> Path:
    """Two series of two patients, 3 × 4 × 4."""
    folder = tmp_path_factory.mktemp("volumes")
    for number in (1, 2):
        volume = noise(10 + number, 3, 4, 4)
        write_series(folder / "raw" / str(number), volume, (0, 2, 4), series=str(number), PatientID=f"P{number}")
    build(folder / "raw", folder / "out", key_file, **VOLUMES)
    return folder / "out"


def test_volumes_are_read_back_as_they_are(two_volumes: Path) -> None:
    assert Manifest.read(two_volumes).fields["npy"].kind == "volume"
    wanted = sorted(int(noise(10 + number, 3, 4, 4).sum()) for number in (1, 2))
    opened = shardforge.open(two_volumes)
    assert sorted(int(opened[i]["image"].sum()) for i in range(2)) == wanted
    assert opened[0]["image"].shape == (3, 4, 4, 1)
    one_by_one = list(shardforge.ShardDataset(two_volumes, shuffle=False, fields=("image", "key")))
    assert sorted(int(sample["image"].sum()) for sample in one_by_one) == wanted
    (batch,) = shardforge.ShardLoader(two_volumes, shuffle=False, batch_size=2, fields=("image",))
    assert batch["image"].shape == (2, 3, 4, 4, 1)
    assert batch["image"].dtype == torch.int16
    assert sorted(int(volume.sum()) for volume in batch["image"].int()) == wanted


def test_windows_of_a_volume_in_training_are_channels(two_volumes: Path) -> None:
    windowed = shardforge.ShardLoader(
        two_volumes, shuffle=False, batch_size=2, fields=("image",), transform=Window("lung,40/400")
    )
    plain = shardforge.ShardLoader(two_volumes, shuffle=False, batch_size=2, fields=("image",))
    (batch,), (values,) = windowed, plain
    assert batch["image"].shape == (2, 3, 4, 4, 2)
    for channel, (center, width) in enumerate(((-600, 1500), (40, 400))):
        x = values["image"][..., 0].double()
        wanted = ((x - (center - 0.5)) / (width - 1) + 0.5).clamp(0, 1) * 255 + 0.5
        assert torch.equal(batch["image"][..., channel], wanted.to(torch.uint8))


def test_a_volume_through_a_window_has_grey_levels(tmp_path: Path, key_file: Path) -> None:
    volume = noise(3, 4, 5, 5)
    write_series(tmp_path / "raw", volume, (0, 1, 2, 3), PixelSpacing=[1, 1])
    (row,) = build(tmp_path / "raw", tmp_path / "out", key_file, **{**VOLUMES, "window": "40/400"})
    wanted = np.clip((volume - 39.5) / 399 + 0.5, 0, 1) * 255 + 0.5
    assert np.array_equal(picture_of(tmp_path / "out", row), wanted.astype(np.uint8))


def test_a_broken_slice_costs_its_volume_only(tmp_path: Path, key_file: Path) -> None:
    write_series(tmp_path / "raw" / "a", noise(5, 3, 4, 4), (0, 1, 2), series="1", PatientID="A")
    broken = write_series(tmp_path / "raw" / "b", noise(6, 3, 4, 4), (0, 1, 2), series="2", PatientID="B")
    broken[1].write_bytes(broken[1].read_bytes()[:-7])
    write_image(tmp_path / "raw" / "c", noise(7, 4, 4), SeriesInstanceUID="1.2.3", SOPInstanceUID="1.2.3.4")
    rows = build(tmp_path / "raw", tmp_path / "out", key_file, **VOLUMES)
    assert sorted((row["status"], row["reason"] or "") for row in rows) == [
        ("failed", "truncated"),
        ("filtered", "single_slice"),
        ("success", ""),
    ]
    assert len(list(samples(tmp_path / "out"))) == 1
