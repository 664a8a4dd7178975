"""The DICOM files of the corpus and what is known of them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardforge.codecs.dicom.pixels import StoredFrame, decode_frame
from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.limits import Limits
from shardforge.shards.catalogue import Flag, Reason
from tests.conftest import ROOT

LIMITS = Limits(source_bytes=1 << 26)
"""No file of the corpus needs more than 64 MiB, inflated, but for one bomb."""

FLAGS = {
    "preamble_not_empty": Flag.PREAMBLE_NOT_EMPTY,
    "ts_inferred": Flag.TS_INFERRED,
    "transfer_syntax_mismatch": Flag.TS_MISMATCH,
    "missing_sequence_delimiter": Flag.MISSING_SEQUENCE_DELIMITER,
    "jpeg_bad_sos": Flag.JPEG_BAD_SOS,
    "palette_depth_mismatch": Flag.PALETTE_DEPTH_MISMATCH,
    "photometric_mismatch": Flag.PHOTOMETRIC_MISMATCH,
    "functional_group_conflict": Flag.FUNCTIONAL_GROUP_CONFLICT,
    "excess_frames": Flag.EXCESS_FRAMES,
    "number_of_frames_0": Flag.NUMBER_OF_FRAMES_0,
    "bad_ds_value": Flag.BAD_DS_VALUE,
    "presentation_lut_shape_conflict": Flag.LUT_SHAPE_CONFLICT,
    "invalid_rescale": Flag.INVALID_RESCALE,
    "wc_ww_count_mismatch": Flag.WINDOW_COUNT_MISMATCH,
    "invalid_window": Flag.INVALID_WINDOW,
    "linear_width_below_1": Flag.WIDTH_BELOW_1,
    "ct_unsigned_wrap_suspect": Flag.UNSIGNED_WRAP_SUSPECT,
}
"""The corpus's words for what is to be noticed while a file is read; burned-in text is judged elsewhere."""

REASONS = {
    "not_image": Reason.NOT_A_PICTURE,
    "dicomdir": Reason.NOT_A_PICTURE,
    "no_pixels": Reason.NO_PIXELS,
    "not_dicom": Reason.NOT_DICOM,
    "decoder_error": Reason.CORRUPT,
    "over_budget": Reason.OVER_BUDGET,
    "truncated": Reason.TRUNCATED,
    "bad_header": Reason.BAD_HEADER,
    "empty": Reason.EMPTY,
}


def _load() -> dict[str, dict[str, Any]]:
    path = Path(os.environ.get("SHARDFORGE_CORPUS", ROOT.parent / "shared" / "corpus")) / "expected.jsonl"
    if not path.is_file():
        return {}
    facts = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {fact["path"]: fact["expect"] for fact in facts if fact["path"].startswith("dicom/")}


EXPECTED = _load()
REFUSED = [name for name, expect in EXPECTED.items() if expect.get("error") or expect.get("skip")]
PICTURES = [name for name in EXPECTED if name not in REFUSED]


def with_fact(fact: str) -> list[str]:
    """Names of the pictures of which something is known; never empty, so that an absent corpus skips the test."""
    return [name for name in PICTURES if fact in EXPECTED[name]] or ["absent"]


def read(corpus: Path, name: str) -> DicomFile:
    return read_dicom((corpus / name).read_bytes(), LIMITS)


def frames(file: DicomFile) -> list[StoredFrame]:
    return [decode_frame(file, number) for number in range(file.frames)]


def stacked(file: DicomFile) -> NDArray[Any]:
    return np.stack([frame.values for frame in frames(file)])


def sha256(values: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()
