"""Masks where one value per pixel cannot show everything: segments that overlap, several segmentations of a slice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from pydicom.uid import UID

import shardforge
from shardforge.shards.layout import BUILD_RECORD
from tests.dicom_builds import all_rows, mask_of


def build(source: Path, out: Path, key_file: Path) -> tuple[list[dict[str, Any]], shardforge.BuildReport]:
    options: dict[str, Any] = {"identifiers": "keep", "burned_in": "keep", "resize": "none", "format": "png"}
    report = shardforge.build(source, out, kind="dicom", key_file=key_file, workers=1, quiet=True, **options)
    return all_rows(out), report


def slices(corpus: Path, folder: Path, *segmentations: str) -> Path:
    shutil.copytree(corpus / "dicom" / "patients" / "77654033" / "CT2", folder)
    for name in segmentations:
        shutil.copy(corpus / "dicom" / "seg" / name, folder)
    return folder


def claimed(corpus: Path, name: str) -> dict[str, dict[int, int]]:
    """SOP instance UID → segment number → pixels."""
    seg = pydicom.dcmread(corpus / "dicom" / "seg" / name)
    found: dict[str, dict[int, int]] = {}
    for frame, groups in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True):
        image = str(groups.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID)
        number = int(groups.SegmentIdentificationSequence[0].ReferencedSegmentNumber)
        found.setdefault(image, {})[number] = int(np.count_nonzero(frame))
    return found


def test_samples_whose_segments_overlap_are_flagged_and_told(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    source = slices(corpus, tmp_path / "raw", "seg_image_ct_binary_overlap.dcm")
    rows, report = build(source, tmp_path / "out", key_file)
    wanted = claimed(corpus, "seg_image_ct_binary_overlap.dcm")
    assert len(wanted) == len(rows) == 4
    for row in rows:
        stored = mask_of(tmp_path / "out", row)
        assert wanted[row["dicom_sop_uid"]] == {1: 16, 2: 4}
        # All four pixels of segment 2 lie within segment 1.
        assert (np.count_nonzero(stored == 1), np.count_nonzero(stored == 2)) == (12, 4)
        assert "mask_overlap" in row["flags"]
    told = (
        "segments overlap in the masks of 4 samples (flag mask_overlap); the highest segment number covers the others"
    )
    assert told in report.warnings
    assert told in json.loads((tmp_path / "out" / BUILD_RECORD).read_bytes())["warnings"]


def test_segments_beside_each_other_are_no_overlap(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    rows, report = build(slices(corpus, tmp_path / "raw", "seg_image_ct_binary.dcm"), tmp_path / "out", key_file)
    assert sum(row["mask.png_size"] is not None for row in rows) >= 2
    assert not any("mask_overlap" in row["flags"] for row in rows)
    assert report.warnings == ()


def test_of_several_segmentations_the_first_by_uid_is_the_mask(corpus: Path, tmp_path: Path, key_file: Path) -> None:
    source = slices(corpus, tmp_path / "raw", "seg_image_ct_binary_overlap.dcm")
    for number in (1, 2):
        other = pydicom.dcmread(source / "seg_image_ct_binary_overlap.dcm")
        # The file's own UID begins with another number, so that one of 0 comes before it.
        other.SOPInstanceUID = other.file_meta.MediaStorageSOPInstanceUID = UID(f"0.0.{number}")
        other.PixelData = bytes(len(other.PixelData))
        other.save_as(source / f"other{number}")
    rows, report = build(source, tmp_path / "out", key_file)
    assert not any(mask_of(tmp_path / "out", row).any() or "mask_overlap" in row["flags"] for row in rows)
    told = "4 images have several segmentations; the first by UID is the mask, the others are left out"
    assert told in report.notes
