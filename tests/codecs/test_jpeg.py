from __future__ import annotations

import io
import re

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from shardforge.codecs.decode import Picture, decode
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import LIMITS, jpeg_segment, outcome, read, rgb_scene, with_segments

SCENE = rgb_scene(96, 64)
PLAIN: bytes = simplejpeg.encode_jpeg(SCENE, 90)


def _progressive() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(SCENE).save(buffer, "JPEG", quality=90, progressive=True)
    return buffer.getvalue()


def _with_restarts() -> bytes:
    """One restart marker after each of the 24 blocks of 16 x 16 pixels."""
    buffer = io.BytesIO()
    Image.fromarray(SCENE).save(buffer, "JPEG", quality=90, restart_marker_blocks=1)
    return buffer.getvalue()


def _reason(data: bytes) -> Reason:
    with pytest.raises(SampleError) as caught:
        read(data)
    return caught.value.reason


def test_clean_picture_has_no_flags_and_equals_another_decoder() -> None:
    picture = read(PLAIN)
    assert picture.flags == ()
    assert picture.decoder == "simplejpeg"
    assert np.array_equal(picture.pixels, np.asarray(Image.open(io.BytesIO(PLAIN))))


def test_missing_end_marker_is_flagged_and_the_picture_kept() -> None:
    picture = read(PLAIN[:-2])
    assert picture.flags == (Flag.SUSPECT, Flag.MISSING_EOI)
    assert np.array_equal(picture.pixels, read(PLAIN).pixels)


@pytest.mark.parametrize("kind", ["baseline", "progressive"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
def test_picture_cut_off_is_truncated(kind: str, share: float) -> None:
    data = PLAIN if kind == "baseline" else _progressive()
    assert _reason(data[: int(len(data) * share)]) is Reason.TRUNCATED


def test_every_cut_is_refused_or_leaves_the_whole_picture() -> None:
    data = _progressive()
    whole = read(data).pixels
    for length in range(2, len(data), 7):
        picture = outcome(data[:length])
        if isinstance(picture, Reason):
            assert picture is Reason.TRUNCATED, length
        else:
            assert Flag.MISSING_EOI in picture.flags
            assert np.array_equal(picture.pixels, whole)


def test_progressive_file_that_ends_between_two_scans_is_truncated() -> None:
    # Cut exactly before the last scan, every scan before it is whole, so that no decoder complains.
    data = _progressive()
    last = [match.start() for match in re.finditer(b"\xff\xc4", data)][-1]
    assert _reason(data[:last]) is Reason.TRUNCATED
    assert _reason(data[:last] + b"\xff\xd9") is Reason.TRUNCATED


def test_junk_between_header_segments_is_dropped_and_flagged() -> None:
    comment = jpeg_segment(0xFE, b"hello")
    picture = read(with_segments(PLAIN, comment, b"junk!"))
    assert picture.flags == (Flag.SUSPECT, Flag.EXTRANEOUS_BYTES)
    assert np.array_equal(picture.pixels, read(PLAIN).pixels)


def test_bytes_before_the_end_marker_are_flagged() -> None:
    picture = read(PLAIN[:-2] + b"\0" * 20 + PLAIN[-2:])
    assert set(picture.flags) == {Flag.SUSPECT, Flag.EXTRANEOUS_BYTES}
    assert np.array_equal(picture.pixels, read(PLAIN).pixels)


def test_bytes_behind_the_end_marker_are_harmless() -> None:
    assert read(PLAIN + b"trailing" * 100).flags == ()


def test_noise_in_the_scan_is_corrupt() -> None:
    middle = len(PLAIN) // 2
    assert _reason(PLAIN[:middle] + bytes(range(1, 65)) + PLAIN[middle + 64 :]) is Reason.CORRUPT


def test_one_misnumbered_restart_marker_is_flagged_and_the_picture_is_whole() -> None:
    data = _with_restarts()
    markers = _markers(data)
    assert len(markers) == 23
    for shift in range(1, 8):
        number = 0xD0 | (data[markers[8] + 1] + shift) & 7
        damaged = data[: markers[8] + 1] + bytes([number]) + data[markers[8] + 2 :]
        picture = read(damaged)
        assert set(picture.flags) == {Flag.SUSPECT, Flag.CORRUPT_DATA}
        assert np.array_equal(picture.pixels, read(data).pixels)
        assert _reason(damaged[: len(damaged) * 2 // 3]) is Reason.TRUNCATED


def _markers(data: bytes) -> list[int]:
    return [match.start() for match in re.finditer(rb"\xff[\xd0-\xd7]", data)]


def _kept_damaged(data: bytes) -> Picture | Reason:
    try:
        return decode(data, channels=3, background=(0, 0, 0), limits=LIMITS, keep_damaged=True)
    except SampleError as error:
        return error.reason


@pytest.mark.parametrize("inside", [0, 9])
@pytest.mark.parametrize("kept", [1, 8, 12, 16, 21])
@pytest.mark.parametrize("behind", [b"", b"\xff\xd9", b"\xff\xd9trailing"])
def test_data_cut_at_a_restart_marker_are_truncated(kept: int, inside: int, behind: bytes) -> None:
    data = _with_restarts()
    cut = data[: _markers(data)[kept] + inside] + behind
    assert outcome(cut) in (Reason.TRUNCATED, Reason.CORRUPT)
    assert _kept_damaged(cut) in (Reason.TRUNCATED, Reason.CORRUPT)
    if not inside:
        assert outcome(cut) is Reason.TRUNCATED


@pytest.mark.parametrize("count", [1, 3, 8])
def test_lost_intervals_are_never_kept(count: int) -> None:
    data = _with_restarts()
    markers = _markers(data)
    lost = data[: markers[4]] + data[markers[4 + count] :]
    assert outcome(lost) in (Reason.TRUNCATED, Reason.CORRUPT)
    assert _kept_damaged(lost) in (Reason.TRUNCATED, Reason.CORRUPT)
    # A marker alone: the interval behind it is there, but no decoder finds its place.
    assert outcome(data[: markers[4]] + data[markers[4] + 2 :]) is Reason.CORRUPT


@pytest.mark.parametrize("count", [1, 3, 8])
def test_repeated_intervals_are_kept_on_request_only(count: int) -> None:
    data = _with_restarts()
    markers = _markers(data)
    repeated = data[: markers[4 + count]] + data[markers[4] :]
    assert outcome(repeated) is Reason.CORRUPT
    picture = _kept_damaged(repeated)
    assert isinstance(picture, Picture)
    assert {Flag.SUSPECT, Flag.CORRUPT_DATA} <= set(picture.flags)


def test_intervals_in_another_order_are_corrupt() -> None:
    data = _with_restarts()
    m = _markers(data)
    swapped = data[: m[4]] + data[m[6] : m[8]] + data[m[4] : m[6]] + data[m[8] :]
    assert outcome(swapped) is Reason.CORRUPT
    picture = _kept_damaged(swapped)
    assert isinstance(picture, Picture)
    assert Flag.CORRUPT_DATA in picture.flags


def test_two_different_sizes_are_refused() -> None:
    # Behind the stuffed byte the decoder finds a marker; a reader that took the size from elsewhere would be fooled.
    frame = PLAIN.index(b"\xff\xc0")
    other = PLAIN[frame : frame + 5] + b"\x00\x08\x00\x08" + PLAIN[frame + 9 : frame + 19]
    assert _reason(PLAIN[:frame] + other + PLAIN[frame:]) is Reason.CORRUPT


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xd8", Reason.TRUNCATED),
        (b"\xff\xd8\xff\xd9", Reason.CORRUPT),
        (b"\xff\xd8\xff\xe0\0\x01", Reason.CORRUPT),
        (b"\xff\xd8\xff\xe0\xff\xff", Reason.TRUNCATED),
        (b"\xff\xd8" + jpeg_segment(0xC0, b"\x08\0\x10\0\0\x01\x01\x11\0"), Reason.BAD_HEADER),
        (b"\xff\xd8" + jpeg_segment(0xC0, b"\x08\0\0\0\x10\x01\x01\x11\0"), Reason.UNSUPPORTED),
        (b"\xff\xd8" + jpeg_segment(0xF7, b"\x08\0\x10\0\x10\x01\x01\x11\0"), Reason.UNSUPPORTED),
        (b"\xff\xd8" + jpeg_segment(0xC0, b"\x08\0\x10\0\x10\x02\x01\x11\0\x02\x11\0"), Reason.UNSUPPORTED),
    ],
)
def test_impossible_header_has_its_reason(data: bytes, reason: Reason) -> None:
    assert _reason(data) is reason


def test_adobe_cmyk_becomes_rgb_and_without_marker_is_a_flagged_guess() -> None:
    ink = np.zeros((16, 32, 4), np.uint8)
    ink[:, :16] = (0, 255, 255, 0)
    ink[:, 16:] = (255, 0, 0, 51)
    buffer = io.BytesIO()
    Image.fromarray(ink, "CMYK").save(buffer, "JPEG", quality=100)
    with_marker = read(buffer.getvalue())
    assert with_marker.flags == ()
    assert np.abs(with_marker.pixels[8, 4].astype(int) - (255, 0, 0)).max() <= 2
    assert np.abs(with_marker.pixels[8, 28].astype(int) - (0, 204, 204)).max() <= 2
    data = buffer.getvalue()
    at = data.index(b"\xff\xee")
    without = read(data[:at] + data[at + 16 :])
    assert without.flags == (Flag.CMYK_ASSUMED_INVERTED,)
    assert np.array_equal(without.pixels, with_marker.pixels)


def test_grey_file_is_read_for_one_and_three_channels() -> None:
    grey = np.ascontiguousarray(SCENE[:, :, :1])
    data = simplejpeg.encode_jpeg(grey, 95, "GRAY", "Gray")
    one, three = read(data, 1).pixels, read(data, 3).pixels
    assert one.shape == (64, 96, 1)
    assert all(np.array_equal(three[:, :, i], one[:, :, 0]) for i in range(3))
