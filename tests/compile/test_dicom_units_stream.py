"""What DICOM builds store reaches training as it is: volumes, and modality values for windows of later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pydicom
import pytest
import torch

import shardforge as sf
from shardforge.transforms import Window


@pytest.fixture(autouse=True)
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def _volume(folder: Path) -> np.ndarray:
    """The modality values of a series of unsigned axes, by pydicom: slices along the normal."""
    slices = [pydicom.dcmread(path) for path in folder.iterdir()]
    orientation = np.array(slices[0].ImageOrientationPatient, float)
    normal = np.cross(orientation[:3], orientation[3:])
    slices.sort(key=lambda one: float(normal @ np.array(one.ImagePositionPatient, float)))
    return np.stack([one.pixel_array * int(one.RescaleSlope) + int(one.RescaleIntercept) for one in slices])


def test_a_volume_comes_out_of_reader_and_loader_as_hounsfield_units(corpus: Path, tmp_path: Path) -> None:
    series = corpus / "dicom" / "series_ct"
    sf.build(series, tmp_path / "out", unit="volume", window="none", format="npy", quiet=True)
    expected = _volume(series)
    dataset = sf.open(tmp_path / "out")
    assert np.array_equal(dataset[0]["image"], expected[..., None])
    (batch,) = sf.ShardLoader(tmp_path / "out", split="train", batch_size=1)
    assert batch["image"].dtype == torch.int16
    assert np.array_equal(batch["image"][0].numpy(), expected[..., None])
    lung, bone = (np.clip((expected - (c - 0.5)) / (w - 1) + 0.5, 0, 1) for c, w in ((-600, 1500), (480, 2500)))
    shown = np.floor(255 * np.stack([lung, bone], axis=-1) + 0.5)
    assert np.array_equal(Window("lung,bone")(batch["image"])[0].numpy(), shown)


def test_windows_in_training_give_the_pixels_of_windows_in_the_build(corpus: Path, tmp_path: Path) -> None:
    series = corpus / "dicom" / "series_ct"
    windows = "brain,subdural,bone"
    sf.build(series, tmp_path / "values", window="none", format="npy", size=64, quiet=True)
    sf.build(series, tmp_path / "pixels", window=windows, format="png", size=64, quiet=True)
    values, pixels = ({row["key"]: row["image"] for row in sf.open(tmp_path / name)} for name in ("values", "pixels"))
    assert len(values) == 17
    show = Window(windows)
    assert all(np.array_equal(show(image), pixels[key]) for key, image in values.items())


def test_a_source_of_nothing_but_segmentations_is_an_empty_dataset(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1").write_bytes((corpus / "dicom" / "seg" / "liver_1frame.dcm").read_bytes())
    report = sf.build(tmp_path / "in", tmp_path / "out", quiet=True)
    assert report.items == 0
    assert any("EMPTY" in line for line in report.lines())


def test_images_that_a_table_of_several_classes_does_not_name_can_be_left_out(corpus: Path, tmp_path: Path) -> None:
    series = corpus / "dicom" / "series_ct"
    named = [pydicom.dcmread(path).SOPInstanceUID for path in sorted(series.iterdir())[:3]]
    table = tmp_path / "boxes.csv"
    rows = [f"{named[0]},Mass,1,2,30,40", f"{named[1]},Nodule,5,5,9,9", f"{named[1]},Mass,1,1,7,8"]
    rows.append(f"{named[2]},No finding,,,,")
    table.write_text("\n".join(["image_id,class_name,x_min,y_min,x_max,y_max", *rows]))
    report = sf.build(series, tmp_path / "out", table=table, where="label is not null", quiet=True)
    assert (report.samples, report.failed) == (3, 0)
    assert report.filtered_reasons == {"filtered_where": 14}
    found = sorted(sf.open(tmp_path / "out").metadata["label_name"].drop_null().to_pylist())
    assert [names for names in found if names] == [["Mass"], ["Mass", "Nodule"], ["No finding"]]
