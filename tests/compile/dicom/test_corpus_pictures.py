"""Every picture of the corpus through frame, window and polarity: the 8-bit pictures that others agreed on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardforge.compile.dicom.frame import read_frame
from shardforge.compile.dicom.picture import show
from shardforge.compile.dicom.placement import place_dicom
from shardforge.dicom.modality import ModalityTables
from shardforge.dicom.voi import VoiTables
from shardforge.recipe import Recipe
from tests.codecs.dicom.corpus_files import EXPECTED, read, with_fact

SOURCES = {"window": "top", "shared_window": "shared", "per_frame_window": "frame", "voi_lut": "lut"}


def recipe(window: str, **more: Any) -> Recipe:
    given = {"kind": "dicom", "resize": "none", "format": "npy", "dicom": {"window": window}, **more}
    return Recipe.model_validate(given)


@pytest.mark.parametrize("name", with_fact("display8"))
def test_eight_bit_pictures_are_those_agreed_on(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]
    file, modality, tables = read(corpus, name), ModalityTables(), VoiTables()
    for shown in expected["display8"]:
        voi: dict[str, Any] = shown["voi"]
        preset = voi["source"].startswith("preset:")
        asked = recipe(f"{voi['center']}/{voi['width']}" if preset else "header")
        frame = read_frame(file, shown["frame"], asked.dicom, modality, checked=False)
        height, width = frame.values.shape[:2]
        found = show(frame, place_dicom(width, height, 1.0, None, asked), asked, file.modality, tables)
        pixels = found.pixels[:, :, 0]
        assert found.choices[0].source == ("user" if preset else SOURCES[voi["source"]])
        if expected["stored"].get("lossy"):
            for row, column, *_, level in shown["at"]:
                assert abs(int(pixels[row, column]) - level) <= 1, (row, column)
            assert pixels.mean() == pytest.approx(shown["mean_u8"], abs=1)
        else:
            assert hashlib.sha256(pixels.tobytes()).hexdigest() == shown["sha256_u8"]


@pytest.mark.parametrize("name", ["dicom/ts/ct_explicit_le.dcm", "dicom/voi/made_multi_window.dcm"])
def test_windows_of_one_build_are_the_pictures_of_each_alone(corpus: Path, name: str) -> None:
    wanted = [shown for shown in EXPECTED[name]["display8"] if shown["voi"]["source"].startswith("preset:")]
    asked = recipe(",".join(f"{shown['voi']['center']}/{shown['voi']['width']}" for shown in wanted))
    file = read(corpus, name)
    frame = read_frame(file, 0, asked.dicom, ModalityTables(), checked=False)
    height, width = frame.values.shape
    found = show(frame, place_dicom(width, height, 1.0, None, asked), asked, file.modality, VoiTables()).pixels
    digests = [hashlib.sha256(np.ascontiguousarray(found[:, :, n]).tobytes()).hexdigest() for n in range(len(wanted))]
    assert digests == [shown["sha256_u8"] for shown in wanted]
