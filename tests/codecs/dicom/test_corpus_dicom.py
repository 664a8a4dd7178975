"""Every DICOM file of the corpus against the facts that other decoders agreed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.dicom.rgb import frame_to_rgb, is_colour
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason, Status, status_of
from tests.codecs.dicom.corpus_files import (
    EXPECTED,
    FLAGS,
    LIMITS,
    PICTURES,
    REASONS,
    REFUSED,
    frames,
    read,
    sha256,
    stacked,
    with_fact,
)

ORIGINS = {"per_frame": "frame", "shared": "shared", "top": "top", "none": "default"}
# Where the corpus allows more than one reading, ours.
LEFT_OPEN = {
    "dicom/voi/made_comma_decimal.dcm": {"method": "rescale", "from": "top", "slope": 1.25, "intercept": -1024},
    "dicom/voi/made_slope0.dcm": {"method": "identity", "from": "none", "slope": 1, "intercept": 0},
}
# Some files of the corpus have a preamble that nothing is said of; it has no bearing on the pixels.
ALWAYS_ALLOWED = {Flag.PREAMBLE_NOT_EMPTY}


@pytest.mark.parametrize("name", PICTURES or ["absent"])
def test_header_is_read_as_agreed(corpus: Path, name: str) -> None:
    file = read(corpus, name)
    of = file.format
    found: dict[str, Any] = {
        "transfer_syntax": file.transfer_syntax,
        "modality": file.modality,
        "photometric": of.photometric,
        "rows": of.rows,
        "cols": of.columns,
        "frames": file.frames,
        "samples": of.samples,
        "planar": int(of.planar),
        "bits_allocated": of.bits_allocated,
        "bits_stored": of.bits_stored,
        "high_bit": of.high_bit,
        "signed": int(of.signed),
    }
    expected = dict(EXPECTED[name]["header"])
    if of.samples == 1:
        # Means nothing, and is not kept.
        expected.pop("planar", None)
    if expected.get("frames") == 0:
        expected["frames"] = 1
    if Flag.TS_MISMATCH in file.flags:
        expected.pop("transfer_syntax")
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize("name", with_fact("stored"))
def test_stored_values_are_those_agreed_on(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]["stored"]
    values = stacked(read(corpus, name))
    assert list(values.shape) == expected["shape"]
    assert values.dtype == np.dtype(expected["dtype"])
    if expected.get("lossy"):
        assert abs(float(values.min()) - expected["min"]) <= expected["tol"]
        assert abs(float(values.max()) - expected["max"]) <= expected["tol"]
        assert float(values.mean()) == pytest.approx(expected["mean"], abs=expected["tol"])
    else:
        assert sha256(values) == expected["sha256"]


@pytest.mark.parametrize("name", with_fact("modality"))
def test_rescale_and_modality_tables_are_those_agreed_on(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]
    steps = expected["modality"].get("steps") or LEFT_OPEN[name]
    file = read(corpus, name)
    every = steps if isinstance(steps, list) else [steps] * file.frames
    assert len(every) == file.frames
    for number, step in enumerate(every):
        meaning, _ = frame_meaning(file, number)
        if step["method"] == "lut":
            table = meaning.modality_lut
            assert table is not None
            assert (len(table.data), table.first, table.bits) == (step["entries"], step["first"], step["bits"])
        elif expected.get("route") == "rtdose":
            # The corpus takes the plain image; doses are its values times DoseGridScaling.
            assert (meaning.slope, meaning.intercept) == (1e-6, 0)
        else:
            assert meaning.modality_lut is None
            assert meaning.slope == pytest.approx(step["slope"], rel=1e-8)
            assert meaning.intercept == pytest.approx(step["intercept"], rel=1e-8)
            assert meaning.modality_from == ORIGINS[step["from"]]


@pytest.mark.parametrize("name", with_fact("display8"))
def test_windows_tables_polarity_and_padding_are_those_agreed_on(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]
    file = read(corpus, name)
    for shown in expected["display8"]:
        voi, meaning = shown["voi"], frame_meaning(file, shown["frame"])[0]
        assert meaning.inverted is voi["inverted"]
        if voi["source"].startswith("preset"):
            continue
        if "center" in voi:
            function = voi["function"].split()[0]
            windows = [(window.center, window.width, window.function) for window in meaning.windows]
            assert (voi["center"], voi["width"], function) in windows
        else:
            table = meaning.voi_luts[0]
            assert (len(table.data), table.first, table.bits) == (voi["entries"], voi["first"], voi["bits_declared"])
    fraction = expected["modality"].get("padding_fraction")
    if fraction is not None:
        padding = frame_meaning(file, 0)[0].padding
        assert padding is not None
        values = decode_frame(file, 0).values
        assert ((values >= padding[0]) & (values <= padding[1])).mean() == pytest.approx(fraction)


@pytest.mark.parametrize("name", with_fact("rgb"))
def test_colours_are_those_agreed_on(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]["rgb"]
    file = read(corpus, name)
    assert is_colour(file)
    rgb = np.stack([frame_to_rgb(file, frame)[0] for frame in frames(file)])
    assert rgb.dtype == np.uint8
    assert list(rgb.shape) == expected["shape"]
    for number, row, column, colour in expected["at"]:
        assert np.abs(rgb[number, row, column].astype(int) - colour).max() <= expected["tol"]
    assert rgb.mean(axis=(0, 1, 2)) == pytest.approx(expected["mean"], abs=max(0.01, expected["tol"]))
    if "sha256" in expected:
        assert sha256(rgb) == expected["sha256"]


@pytest.mark.parametrize("name", PICTURES or ["absent"])
def test_what_has_to_be_noticed_is_flagged_and_nothing_else(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]
    file = read(corpus, name)
    found = set(file.flags)
    for number in range(file.frames):
        frame = decode_frame(file, number)
        found.update(frame.flags)
        found.update(frame_meaning(file, number)[1])
        if is_colour(file) and expected.get("route") != "seg":
            found.update(frame_to_rgb(file, frame)[1])
    due = {FLAGS[word] for word in expected.get("warn", ()) if word in FLAGS}
    allowed = {FLAGS[word] for word in expected.get("may_warn", ()) if word in FLAGS} | ALWAYS_ALLOWED
    if expected["header"].get("transfer_syntax") is None:
        # The corpus names no transfer syntax where the file names none.
        allowed.add(Flag.TS_INFERRED)
    assert due <= found
    assert found & set(FLAGS.values()) <= due | allowed


@pytest.mark.parametrize("name", REFUSED or ["absent"])
def test_what_cannot_be_a_sample_is_refused_for_the_right_reason(corpus: Path, name: str) -> None:
    expected = EXPECTED[name]
    with pytest.raises(SampleError) as caught:
        frames(read(corpus, name))
    assert caught.value.reason in {REASONS[word] for word in expected["reason"].split("|")}
    if expected.get("skip"):
        assert status_of(caught.value.reason) is Status.SKIPPED


@pytest.mark.parametrize("name", [n for n in REFUSED if "valid_rows" in EXPECTED[n]] or ["absent"])
def test_whole_rows_of_an_interrupted_copy_can_be_salvaged(corpus: Path, name: str) -> None:
    file = read(corpus, name)
    rows = EXPECTED[name]["valid_rows"]
    frame = decode_frame(file, 0, salvage=True)
    assert (frame.valid_rows, frame.flags) == (rows, (Flag.SALVAGED,))
    assert (frame.values[rows:] == frame.values[:rows].min()).all()


@pytest.mark.parametrize("name", [n for n in REFUSED if "whole_frames" in EXPECTED[n]] or ["absent"])
def test_frames_before_the_damage_are_decoded(corpus: Path, name: str) -> None:
    file = read(corpus, name)
    whole = EXPECTED[name]["whole_frames"]
    for number in range(whole):
        decode_frame(file, number)
    with pytest.raises(SampleError):
        decode_frame(file, whole)


def test_every_transfer_syntax_of_one_image_gives_the_same_values(corpus: Path) -> None:
    exact = ("implicit_le", "explicit_be", "deflated", "rle", "jpegls_lossless", "j2k_lossless")
    exact += ("jpeg_lossless_57", "jpeg_lossless_sv1")
    reference = stacked(read(corpus, "dicom/ts/ct_explicit_le.dcm"))
    for kind in exact:
        assert np.array_equal(stacked(read(corpus, f"dicom/ts/ct_{kind}.dcm")), reference), kind
    for kind, tolerance in (("jpegls_near", 4), ("j2k_lossy", 60)):
        values = stacked(read(corpus, f"dicom/ts/ct_{kind}.dcm"))
        assert np.abs(values.astype(int) - reference).max() <= tolerance, kind
    magnetic = stacked(read(corpus, "dicom/ts/MR_small.dcm"))
    for kind in ("RLE", "bigendian", "implicit", "jp2klossless", "jpeg_ls_lossless", "padded"):
        assert np.array_equal(stacked(read(corpus, f"dicom/ts/MR_small_{kind}.dcm")), magnetic), kind


def test_twins_of_both_polarities_differ_in_their_meaning_alone(corpus: Path) -> None:
    first, second = (read(corpus, f"dicom/voi/made_twin_mono{number}.dcm") for number in (1, 2))
    assert np.array_equal(4095 - stacked(first), stacked(second))
    assert [frame_meaning(file, 0)[0].inverted for file in (first, second)] == [True, False]


def _read_or_reason(data: bytes, *, whole: bool) -> DicomFile | Reason:
    try:
        return read_dicom(data, LIMITS, whole=whole)
    except SampleError as error:
        return error.reason


@pytest.mark.parametrize("name", list(EXPECTED) or ["absent"])
def test_reading_the_needed_elements_alone_changes_nothing(corpus: Path, name: str) -> None:
    data = (corpus / name).read_bytes()
    whole, needed = (_read_or_reason(data, whole=kept) for kept in (True, False))
    if not isinstance(whole, DicomFile) or not isinstance(needed, DicomFile):
        assert whole is needed
        return
    assert (needed.format, needed.frames, needed.flags) == (whole.format, whole.frames, whole.flags)
    assert (needed.sop_class, needed.modality) == (whole.sop_class, whole.modality)
    assert (needed.pixels, needed.fragments) == (whole.pixels, whole.fragments)
    for number in (0, whole.frames - 1):
        assert repr(frame_meaning(needed, number)) == repr(frame_meaning(whole, number))
    if is_colour(whole):
        colours = [frame_to_rgb(file, decode_frame(file, 0))[0] for file in (whole, needed)]
        assert np.array_equal(*colours)
