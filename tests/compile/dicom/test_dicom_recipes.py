"""The ready recipes for DICOM, by name, on corpus data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardforge
from shardforge.recipe import named_recipes
from shardforge.shards.verify import verify
from tests.dicom_builds import all_rows, picture_of
from tests.pictures import run

RECIPES: dict[str, tuple[str, ...]] = {
    "ct-lung": (
        "series_ct/IMG0001.dcm",
        "series_ct/IMG0009.dcm",
        "ts/MR_small.dcm",
        "phi/made_burned_in_secondary.dcm",
    ),
    "ct-head": ("patients/77654033/CT2/17106", "ts/ct_explicit_le.dcm", "nonimage/test-SR.dcm"),
    "ct-volume": ("series_made_shuffled", "series_made_gap"),
    "mammography": ("voi/made_padding_range.dcm", "voi/made_padding_range_mono1.dcm", "voi/made_twin_mono1.dcm"),
    "chest-xray": ("voi/made_twin_mono1.dcm", "voi/made_twin_mono2.dcm", "voi/dx_image_mono1.dcm"),
    "mr-brain": ("patients/98892003/MR700", "ts/ct_rle.dcm"),
    "ultrasound": ("ts/JPGLosslessP14SV1_1s_1f_8b.dcm", "color/OBXXXX1A_rle_2frame.dcm", "color/US1_J2KI.dcm"),
}
"""Of the corpus, what each is given: what it is made for, and something that it has to leave out."""


def samples_of(corpus: Path, tmp_path: Path, key_file: Path, name: str) -> list[tuple[dict[str, Any], Any]]:
    """Rows that became samples, with their pictures."""
    source = tmp_path / "raw"
    source.mkdir()
    for part in RECIPES[name]:
        path = corpus / "dicom" / part
        if path.is_dir():
            shutil.copytree(path, source / path.name)
        else:
            shutil.copy(path, source)
    out = tmp_path / "out"
    shardforge.build(source, out, name, key_file=key_file, max_errors="100%", workers=1, quiet=True)
    assert verify(out).damage == ()
    assert len(shardforge.open(out)) == sum(row["status"] == "success" for row in all_rows(out))
    return [(row, picture_of(out, row)) for row in all_rows(out) if row["status"] == "success"]


def reasons(out: Path) -> list[str]:
    return sorted(row["reason"] for row in all_rows(out) if row["reason"])


def test_all_recipes_for_dicom_are_tested_here() -> None:
    others = {"captions-512", "grey-lossless", "imagenet-256", "segmentation-512"}
    assert set(named_recipes()) - others == set(RECIPES)


def test_ct_lung(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "ct-lung")
    assert len(made) == 2
    assert "filtered_where" in reasons(tmp_path / "out")
    for row, picture in made:
        assert (row["dicom_window_center"], row["dicom_window_width"]) == ([-600], [1500])
        assert picture.shape[2] == 1
        assert max(picture.shape) <= 512


def test_ct_head(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "ct-head")
    assert len(made) == 2
    for row, picture in made:
        assert row["dicom_window_center"] == [40, 80, 600]
        assert row["dicom_window_width"] == [80, 200, 2800]
        assert picture.shape[2] == 3
        # The wider the window, the fewer values it cuts off.
        ends = [((channel == 0) | (channel == 255)).mean() for channel in picture.transpose(2, 0, 1)]
        assert ends[0] >= ends[1] >= ends[2]


def test_ct_volume(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    ((row, volume),) = samples_of(corpus, tmp_path, key_file, "ct-volume")
    assert reasons(tmp_path / "out") == ["bad_geometry"]
    assert volume.dtype == np.int16
    # Twelve slices 2.5 mm apart are 30 mm.
    assert volume.shape[0] == row["dicom_depth"] == 30
    assert row["dicom_spacing_slice"] == pytest.approx(1, abs=0.05)


def test_mammography(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "mammography")
    assert len(made) == 2
    for row, picture in made:
        assert picture.dtype == np.uint16
        assert row["dicom_padding_fraction"] > 0
        # Padding is black, of both polarities.
        assert (picture == 0).any()


def test_chest_xray(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "chest-xray")
    assert len(made) == 3
    twins = [picture for _, picture in made if picture.shape[0] == 64]
    # Stored values that mirror each other, of opposite polarities: the same picture (but for JPEG's rounding).
    assert len(twins) == 2
    assert np.abs(twins[0].astype(int) - twins[1]).max() <= 4


def test_mr_brain(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "mr-brain")
    assert len(made) == 7
    for row, picture in made:
        assert row["dicom_voi_source"] == ["percentile"]
        assert picture.min() == 0
        assert picture.max() == 255


def test_ultrasound(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    made = samples_of(corpus, tmp_path, key_file, "ultrasound")
    # US1_J2KI marks no region, and may show text: filtered.
    assert reasons(tmp_path / "out") == ["burned_in"]
    assert len(made) == 3
    for row, picture in made:
        assert picture.shape[2] == 3
        assert row["original_width"] * row["scale_x"] > picture.shape[1]


@pytest.mark.parametrize("name", ["ct-lung"])
def test_a_recipe_is_chosen_by_name_and_changed_by_options(
    corpus: Path, tmp_path: Path, key_file: Path, name: str
) -> None:
    source = corpus / "dicom" / "series_made_flip"
    options = ("--recipe", name, "--window", "40/400", "--key-file", key_file, "--workers", 1)
    result = run("build", source, tmp_path / "out", *options)
    assert result.returncode == 0, result.stderr
    assert {tuple(row["dicom_window_center"]) for row in all_rows(tmp_path / "out")} == {(40,)}
    result = run("build", source, tmp_path / "none", "--recipe", "ct-longs")
    assert result.returncode == 2
    assert "ct-lung" in result.stderr
