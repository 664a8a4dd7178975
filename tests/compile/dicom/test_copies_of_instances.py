"""Several files of one SOP instance: none is dropped unseen, and a volume takes the one that decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.encaps import encapsulate
from pydicom.uid import RLELossless

import shardforge
from shardforge.errors import UsageError
from shardforge.shards.verify import verify
from tests.dicom_builds import all_rows, by_source, picture_of
from tests.dicom_made import noise, write_series

OPTIONS: dict[str, Any] = {
    "kind": "dicom", "format": "npy", "window": "none", "resize": "none", "workers": 1, "quiet": True,
    "max_errors": "100%", "identifiers": "keep",
}  # fmt: skip


@pytest.fixture
def copied(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Three slices; of the middle one a copy with a damaged stream, which goes before it, and a second good one."""
    volume = noise(5, 3, 6, 8)
    source = tmp_path / "raw"
    write_series(source, volume, (0.0, 1.0, 2.0), PixelSpacing=[1, 1])
    again = pydicom.dcmread(source / "002")
    again.save_as(source / "900")
    again.file_meta.TransferSyntaxUID = RLELossless
    again.PixelData = encapsulate([bytes(100)])
    again["PixelData"].is_undefined_length = True
    again.save_as(source / "000")
    return source, volume


def test_a_damaged_copy_does_not_take_the_good_one_with_it(copied: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    source, volume = copied
    shardforge.build(source, tmp_path / "out", **OPTIONS)
    rows = {name: row for name, (row,) in by_source(tmp_path / "out").items()}
    assert {name: row["status"] for name, row in rows.items()} == {
        "000": "failed", "001": "success", "002": "success", "003": "success", "900": "filtered",
    }  # fmt: skip
    assert (picture_of(tmp_path / "out", rows["002"])[:, :, 0] == volume[1]).all()
    assert (rows["900"]["reason"], rows["900"]["duplicate_of"]) == ("duplicate_slice", rows["002"]["key"])


def test_a_volume_takes_the_copy_that_decodes_and_says_so(copied: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    source, volume = copied
    shardforge.build(source, tmp_path / "out", unit="volume", **OPTIONS)
    assert verify(tmp_path / "out").damage == ()
    (row,) = [row for row in all_rows(tmp_path / "out") if row["status"] == "success"]
    assert (picture_of(tmp_path / "out", row) == volume).all()
    assert "spare_slice" in row["flags"]
    (other,) = [row_ for row_ in all_rows(tmp_path / "out") if row_["status"] != "success"]
    assert (other["reason"], other["duplicate_of"]) == ("duplicate_slice", row["key"])


def test_a_volume_without_a_whole_copy_of_a_slice_fails(copied: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    source, _ = copied
    for name in ("002", "900"):
        (source / name).unlink()
    shardforge.build(source, tmp_path / "out", unit="volume", **OPTIONS)
    assert [row["status"] for row in all_rows(tmp_path / "out")] == ["failed"]


def test_an_archive_in_place_of_a_folder_is_told_where_archives_go(tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    archive.write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(UsageError, match="is not a folder") as caught:
        shardforge.build(archive, tmp_path / "out", **OPTIONS)
    assert "folder that it lies in" in (caught.value.todo or "")
