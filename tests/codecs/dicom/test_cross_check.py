"""A second decoder agrees, or the sample fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardforge.codecs.dicom import syntaxes as ts
from shardforge.codecs.dicom.cross_check import cross_check
from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.codecs.dicom.corpus_files import PICTURES, read

SECOND = {
    **dict.fromkeys((ts.IMPLICIT_LE, ts.EXPLICIT_BE, ts.DEFLATED, ts.RLE), "pydicom"),
    ts.JPEG_BASELINE: "opencv",
    **dict.fromkeys((ts.JPEG_LOSSLESS, ts.HTJ2K_LOSSLESS, ts.DEFLATED_FRAMES), "imagecodecs"),
}
"""Transfer syntax → the library that decodes every file of the corpus in it a second time."""


@pytest.mark.parametrize("name", PICTURES or ["absent"])
def test_no_two_decoders_disagree_on_the_corpus(corpus: Path, name: str) -> None:
    file = read(corpus, name)
    last = file.frames - 1
    found = cross_check(file, last, decode_frame(file, last))
    if file.transfer_syntax in SECOND:
        assert found is not None
        assert found.split()[0] == SECOND[file.transfer_syntax]
    else:
        assert found is None or found.split()[0] in SECOND.values()


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("ts/ct_explicit_le.dcm", "pydicom"),
        ("ts/ct_explicit_be.dcm", "pydicom"),
        ("ts/ct_deflated.dcm", "pydicom"),
        ("ts/ct_rle.dcm", "pydicom"),
        ("seg/liver_rle.dcm", "pydicom"),
        ("seg/liver_nonbyte_aligned.dcm", "pydicom"),
        ("seg/liver_deflate.dcm", "imagecodecs"),
        ("bits/made_highbit15_bs12.dcm", "pydicom"),
        ("ts/ct_jpeg_baseline.dcm", "opencv"),
        ("color/SC_rgb_jpeg.dcm", "opencv"),
        ("ts/ct_jpeg_lossless_57.dcm", "imagecodecs"),
        ("color/HTJ2KLossless_08_RGB.dcm", "imagecodecs"),
        ("ts/ct_jpegls_lossless.dcm", None),
        ("ts/ct_j2k_lossless.dcm", None),
        ("ts/ct_jpeg_extended12.dcm", None),
        ("ts/made_jxl_lossless.dcm", None),
        ("float/parametric_map_float.dcm", None),
    ],
)
def test_a_second_decoder_finds_a_single_wrong_value(corpus: Path, name: str, second: str | None) -> None:
    file = read(corpus, f"dicom/{name}")
    frame = decode_frame(file, 0)
    found = cross_check(file, 0, frame)
    assert (found and found.split()[0]) == second
    if second is None:
        return
    wrong = frame.values.copy()
    wrong.flat[wrong.size // 2] ^= 0x40 if wrong.max() > 1 else 1
    with pytest.raises(SampleError) as caught:
        cross_check(file, 0, replace(frame, values=wrong))
    assert caught.value.reason is Reason.DECODERS_DISAGREE


def test_whole_frames_are_checked_where_the_last_is_missing(corpus: Path) -> None:
    file = read(corpus, "dicom/broken/made_missing_frame.dcm")
    for number in range(3):
        assert (cross_check(file, number, decode_frame(file, number)) or "").startswith("pydicom")
    with pytest.raises(SampleError, match="frame 3 ends at"):
        decode_frame(file, 3)
