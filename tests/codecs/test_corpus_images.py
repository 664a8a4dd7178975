"""Every ordinary image of the corpus against the facts that other decoders agreed on."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from shardforge.codecs.decode import Picture, decode_mask
from shardforge.codecs.jpeg_segments import walk
from shardforge.codecs.png import decode_labels
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import LIMITS, corpus_file, read
from tests.conftest import ROOT

FLAGS = {
    "jpeg_corrupt_data": Flag.CORRUPT_DATA,
    "jpeg_extraneous_bytes": Flag.EXTRANEOUS_BYTES,
    "missing_eoi": Flag.MISSING_EOI,
    "png_missing_iend": Flag.PNG_MISSING_IEND,
    "icc_unreadable": Flag.ICC_UNREADABLE,
    "icc_mismatch": Flag.ICC_MISMATCH,
    "text_chunk_budget": Flag.SUSPECT,
}
# Where the corpus and this package differ, and why this package is right.
DEVIATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "images/broken/truncated_jpeg.jpg": (
        {"error": False, "width": 100, "height": 100, "warn": ["missing_eoi"]},
        "only the end marker is missing, as in made_missing_eoi.jpg: all scans decode without a complaint",
    ),
    "images/formats/ultrahdr.jpg": (
        {"error": True, "reason": "truncated"},
        "the file ends with the scan's header: not one coefficient of the picture is there",
    ),
    "images/broken/made_rst_missing.jpg": (
        {"error": True, "reason": "corrupt"},
        "decoders skip the interval behind the missing marker: rows 63 to 80 are not those of made_rst_rows.jpg",
    ),
    "images/anim/apng_sequence_gap.png": (
        {"frames": 2},
        "the default image is no frame (PNG specification, 4.9), as in made_apng_default_not_frame.png",
    ),
    "images/anim/apng_single_frame_default.png": ({"frames": 1}, "as for apng_sequence_gap.png"),
    "images/extreme/png_decompression_dos.png": (
        {"warn": ["text_chunk_budget"]},
        "text is never inflated further than a mebibyte, so the picture can be kept; the file is flagged",
    ),
}

# The corpus has 16-bit values of these from one library only, which mixes up the planes: they contradict the corpus's
# own 8-bit facts and the same picture stored pixel by pixel.
PLANAR = ("images/depth/tiff_strip_planar_16bit_RGB.tiff", "images/depth/tiff_tiled_planar_16bit_RGB.tiff")


def _load() -> dict[str, dict[str, Any]]:
    path = Path(os.environ.get("SHARDFORGE_CORPUS", ROOT.parent / "shared" / "corpus")) / "expected.jsonl"
    if not path.is_file():
        return {}
    facts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    loaded = {fact["path"]: fact["expect"] for fact in facts if fact["kind"] == "image"}
    for name, (changed, _) in DEVIATIONS.items():
        loaded[name] = {**loaded[name], **changed}
    return loaded


EXPECTED = _load()
DECODING = [name for name, expect in EXPECTED.items() if "width" in expect and not expect.get("error")]


def _read(
    corpus: Path, name: str, background: tuple[int, int, int] = (255, 255, 255), channels: int = 3
) -> Picture | None:
    """The picture, or None where it was refused for a reason that the corpus allows for this very file."""
    expect = EXPECTED[name]
    allowed = {Reason(word) for word in expect.get("or_error", "").split("|") if word}
    if expect.get("error_or_warn"):
        allowed.add(Reason.OVER_BUDGET)
    if expect.get("optional_format"):
        allowed.add(Reason.UNSUPPORTED)
    try:
        return read((corpus / name).read_bytes(), channels, background)
    except SampleError as error:
        if error.reason in allowed:
            return None
        raise


def _off(pixels: NDArray[np.uint8], at: list[Any]) -> int:
    return max(int(np.abs(pixels[row, column].astype(int) - value).max()) for row, column, value in at)


@pytest.mark.parametrize("name", DECODING or ["absent"])
def test_picture_has_the_agreed_size_colours_frames_and_flags(corpus: Path, name: str) -> None:
    expect = EXPECTED[name]
    picture = _read(corpus, name)
    if picture is None:
        return
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.flags.c_contiguous
    assert (picture.source_width, picture.source_height) == (expect["width"], expect["height"])
    assert picture.pixels.shape == (expect["height"], expect["width"], 3)
    assert picture.format == (expect["format"] or "tga")
    if isinstance(expect.get("frames"), int):
        assert picture.frames == expect["frames"]
        assert (Flag.FIRST_FRAME in picture.flags) == (picture.frames > 1)
    for word in expect.get("warn", ()):
        assert FLAGS[word] in picture.flags
    if "rgb" in expect and "alpha" not in expect:
        assert _off(picture.pixels, expect["rgb"]["at"]) <= expect["rgb"]["tol"]
        if "sha256" in expect["rgb"]:
            assert hashlib.sha256(picture.pixels.tobytes()).hexdigest() == expect["rgb"]["sha256"]


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if "alpha" in e] or ["absent"])
def test_transparency_is_laid_on_the_background(corpus: Path, name: str) -> None:
    alpha = EXPECTED[name]["alpha"]
    on_white, on_black = _read(corpus, name, (255, 255, 255)), _read(corpus, name, (0, 0, 0))
    if on_white is None or on_black is None:
        assert on_white is on_black
        return
    assert _off(on_white.pixels, [(row, column, white) for row, column, _, white, _ in alpha["at"]]) <= alpha["tol"]
    assert _off(on_black.pixels, [(row, column, black) for row, column, _, _, black in alpha["at"]]) <= alpha["tol"]


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if e.get("error")] or ["absent"])
def test_broken_file_is_refused_for_the_agreed_reason(corpus: Path, name: str) -> None:
    expect = EXPECTED[name]
    reasons = {Reason(word) for word in expect["reason"].split("|")}
    if expect.get("optional_format"):
        reasons.add(Reason.UNSUPPORTED)
    with pytest.raises(SampleError) as caught:
        read((corpus / name).read_bytes())
    assert caught.value.reason in reasons


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if e.get("error_or_warn")] or ["absent"])
def test_bomb_is_refused_or_flagged(corpus: Path, name: str) -> None:
    picture = _read(corpus, name)
    assert picture is None or Flag.SUSPECT in picture.flags


@pytest.mark.parametrize("name", DECODING or ["absent"])
def test_one_channel_is_the_luma_of_three(corpus: Path, name: str) -> None:
    colours = _read(corpus, name, (0, 0, 0))
    grey = _read(corpus, name, (0, 0, 0), channels=1)
    if colours is None or grey is None:
        assert grey is colours
        return
    expected = np.asarray(Image.fromarray(colours.pixels).convert("L"))
    assert grey.pixels.shape == (*expected.shape, 1)
    assert int(np.abs(grey.pixels[:, :, 0].astype(int) - expected).max()) <= 1


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if "raw16" in e and n not in PLANAR] or ["absent"])
def test_16_bits_are_scaled_not_clipped(corpus: Path, name: str) -> None:
    expect = EXPECTED[name]
    # 12bit.cropped.tif declares 12 bits per sample, so that 4095 is white; in the others it is 65535.
    white = 4095 if name.endswith("12bit.cropped.tif") else 65535
    pixels = read((corpus / name).read_bytes(), background=(0, 0, 0)).pixels
    for row, column, value, *_ in expect["raw16"]["at"]:
        values = np.atleast_1d(value)
        if len(values) in (2, 4):
            continue
        wanted = (values[:3].astype(np.int64) * 255 * 2 + white) // (2 * white)
        opaque = {(r, c): rgba[3] == 255 for r, c, rgba, *_ in expect.get("alpha", {}).get("at", ())}
        if opaque.get((row, column), "alpha" not in expect):
            assert (pixels[row, column] == wanted).all()


@pytest.mark.parametrize("name", PLANAR)
def test_deviation_planar_16_bit_tiff_equals_its_interleaved_twin(corpus: Path, name: str) -> None:
    twin = read(corpus_file(corpus, "depth/tiff_16bit_RGB.tiff")).pixels
    assert np.array_equal(read((corpus / name).read_bytes()).pixels, twin)


def test_12_bit_jpeg_is_scaled_to_8(corpus: Path) -> None:
    facts = EXPECTED["images/jpeg/monkey12.jpg"]["rgb12"]
    pixels = read(corpus_file(corpus, "jpeg/monkey12.jpg")).pixels
    assert _off(pixels, [(r, c, np.array(value) * 255 / 4095) for r, c, value in facts["at"]]) <= 1


@pytest.mark.parametrize(
    "name", [n for n, e in EXPECTED.items() if "icc_map" in e and n.endswith(".png")] or ["absent"]
)
def test_profile_maps_device_colours_to_srgb_as_by_arithmetic(corpus: Path, name: str) -> None:
    data = (corpus / name).read_bytes()
    device, pixels = decode_labels(data), read(data).pixels
    seen = 0
    for stored, wanted in EXPECTED[name]["icc_map"]:
        places = (device == stored).all(axis=2)
        if places.any():
            seen += 1
            assert np.abs(pixels[places].astype(int) - wanted).max() <= EXPECTED[name]["icc_tol"]
    assert seen >= 4


@pytest.mark.parametrize("name", [n for n, e in EXPECTED.items() if "labels" in e] or ["absent"])
def test_label_picture_keeps_its_labels(corpus: Path, name: str) -> None:
    facts = EXPECTED[name]["labels"]
    labels = decode_mask((corpus / name).read_bytes(), limits=LIMITS).labels
    assert np.unique(labels).tolist() == facts["values"]
    assert {str(v): int((labels == v).sum()) for v in facts["values"]} == facts["counts"]
    kind, digest = ("uint8", facts["sha256_u8"]) if "sha256_u8" in facts else ("uint16", facts["sha256_u16"])
    assert labels.dtype == kind
    assert hashlib.sha256(labels.tobytes()).hexdigest() == digest


@pytest.mark.parametrize("stem", ["landscape", "portrait"])
def test_all_orientations_show_the_same_photograph(corpus: Path, stem: str) -> None:
    upright = [read(corpus_file(corpus, f"exif/{stem}_{i}.jpg")).pixels.astype(float) for i in range(9)]
    for other in upright:
        assert np.abs(other - upright[1]).mean() < 3


@pytest.mark.parametrize("kind", [*(f"made_png_exif_{i}.png" for i in range(1, 9)), "made_tiff_orient_6.tif"])
def test_oriented_file_equals_the_upright_scene(corpus: Path, kind: str) -> None:
    scene = read(corpus_file(corpus, "exif/made_scene.png")).pixels
    assert np.array_equal(read(corpus_file(corpus, f"exif/{kind}")).pixels, scene)


@pytest.mark.parametrize("quarters", range(4))
@pytest.mark.parametrize("axis", range(2))
def test_avif_is_turned_anticlockwise_then_mirrored(corpus: Path, quarters: int, axis: int) -> None:
    data = corpus_file(corpus, "formats/rot1mir0.avif")
    for kind, value in ((b"irot", quarters), (b"imir", axis)):
        at = data.index(kind) + 4
        data = data[:at] + bytes([value]) + data[at + 1 :]
    stored = imagecodecs.avif_decode(data, numthreads=1)
    # HEIF, 6.5.10 and 6.5.12: quarter turns anticlockwise; axis 0 exchanges top and bottom, 1 left and right.
    assert np.array_equal(read(data).pixels, np.flip(np.rot90(stored, quarters), axis))


def test_deviation_truncated_jpeg_is_complete_but_for_its_end_marker(corpus: Path) -> None:
    data = corpus_file(corpus, "broken/truncated_jpeg.jpg")
    assert read(data).pixels.shape == (100, 100, 3)
    # Two bytes less and the strict decoder misses data: the file reaches exactly to the end of the last scan.
    with pytest.raises(SampleError) as caught:
        read(data[:-2])
    assert caught.value.reason is Reason.TRUNCATED


def test_deviation_ultrahdr_has_no_picture_data(corpus: Path) -> None:
    data = corpus_file(corpus, "formats/ultrahdr.jpg")
    last = walk(data, whole=True).segments[-1]
    assert last.marker == 0xDA
    assert last.end == last.scan_end == len(data)
