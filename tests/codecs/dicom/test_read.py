"""What is refused before any pixel is decoded, and why."""

from __future__ import annotations

import tracemalloc

import pytest

from shardforge.codecs.dicom.sop_classes import is_no_picture
from shardforge.codecs.dicom.syntaxes import is_video
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.dicom.dicom_files import encapsulated, explicit, items, meta, module, native, opened

ROWS, SAMPLES, ALLOCATED, STORED, HIGH, FRAMES = (
    0x00280010,
    0x00280002,
    0x00280100,
    0x00280101,
    0x00280102,
    0x00280008,
)


def reason(data: bytes, limits: Limits = Limits()) -> Reason:  # noqa: B008
    with pytest.raises(SampleError) as caught:
        opened(data, limits)
    return caught.value.reason


def changed(tag: int, vr: str, value: object, **image: object) -> bytes:
    elements = module(**image)  # type: ignore[arg-type]
    elements[tag] = explicit(tag, vr, value)  # type: ignore[arg-type]
    return native(bytes(8), elements)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (changed(ROWS, "US", [0]), Reason.BAD_HEADER),
        (changed(ROWS, "US", b""), Reason.BAD_HEADER),
        (changed(ROWS, "DS", "2.5"), Reason.BAD_HEADER),
        (changed(ROWS, "SS", [-2]), Reason.BAD_HEADER),
        (changed(SAMPLES, "US", [2]), Reason.BAD_HEADER),
        (changed(SAMPLES, "US", [4]), Reason.UNSUPPORTED),
        (changed(ALLOCATED, "US", [0]), Reason.BAD_HEADER),
        (changed(ALLOCATED, "US", [12]), Reason.UNSUPPORTED),
        (changed(STORED, "US", [17]), Reason.BAD_HEADER),
        (changed(HIGH, "US", [16]), Reason.BAD_HEADER),
        (changed(HIGH, "US", [3]), Reason.BAD_HEADER),
        (changed(FRAMES, "IS", "1A"), Reason.BAD_HEADER),
        (changed(FRAMES, "IS", "-1"), Reason.BAD_HEADER),
        (native(bytes(8), module(photometric="RGB")), Reason.BAD_HEADER),
        (native(bytes(8), module(photometric="BOGUS")), Reason.BAD_HEADER),
        (changed(0x00280103, "US", [2]), Reason.BAD_HEADER),
        (changed(0x00280103, "US", [7]), Reason.BAD_HEADER),
    ],
)
def test_an_impossible_image_is_refused(data: bytes, expected: Reason) -> None:
    assert reason(data) is expected


def test_what_is_left_out_has_its_usual_meaning() -> None:
    elements = module(bits=(8, 8, 7))
    for tag in (SAMPLES, 0x00280004, STORED, HIGH, 0x00280103):
        del elements[tag]
    of = opened(native(bytes(4), elements)).format
    assert (of.samples, of.photometric, of.bits_stored, of.high_bit, of.signed) == (1, "MONOCHROME2", 8, 7, False)
    assert opened(changed(FRAMES, "IS", "")).frames == 1
    assert opened(changed(FRAMES, "IS", "0")).flags == (Flag.NUMBER_OF_FRAMES_0,)


def test_a_budget_is_judged_from_the_header_alone() -> None:
    small = Limits(pixels=100, frames=3, source_bytes=2000)
    assert reason(native(bytes(8), module(50, 50)), small) is Reason.OVER_BUDGET
    assert reason(native(bytes(8), module(frames="4")), small) is Reason.OVER_BUDGET
    assert reason(native(bytes(4000), module()), small) is Reason.OVER_BUDGET
    # Twelve bytes a pixel cost more than the eight that the limit stands for.
    wide = module(10, 10, samples=3, bits=(32, 32, 31), photometric="RGB")
    assert reason(native(bytes(8), wide), small) is Reason.OVER_BUDGET
    tracemalloc.start()
    reason(native(bytes(8), module(65535, 65535, frames="2000000000")))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("uid", "expected"),
    [
        ("1.2.840.10008.1.3.10", True),
        ("1.2.840.10008.5.1.4.1.1.88.11", True),
        ("1.2.840.10008.5.1.4.1.1.11.1", True),
        ("1.2.840.10008.5.1.4.1.1.481.5", True),
        ("1.2.840.10008.5.1.4.1.1.104.1", True),
        ("1.2.840.10008.5.1.4.1.1.9.1.1", True),
        ("1.2.840.10008.5.1.4.1.1.66.1", True),
        ("1.2.840.10008.5.1.4.1.1.66.4", False),
        ("1.2.840.10008.5.1.4.1.1.481.2", False),
        ("1.2.840.10008.5.1.4.1.1.2", False),
        ("1.2.840.10008.5.1.4.1.1.4.1", False),
        ("1.2.840.10008.5.1.4.1.1.88888", False),
        ("", False),
    ],
)
def test_classes_without_pictures_are_known(uid: str, expected: bool) -> None:
    assert is_no_picture(uid) is expected


def test_objects_without_pixels_are_skipped_and_cut_ones_are_not() -> None:
    report = explicit(0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.88.11")
    assert reason(meta() + report) is Reason.NOT_A_PICTURE
    image = b"".join(part for _, part in sorted(module().items()))
    assert reason(meta() + image) is Reason.NO_PIXELS
    assert reason(meta() + image + explicit(0x00290010, "OB", b"abcd", length=900)) is Reason.TRUNCATED


def test_videos_are_no_pictures_to_decode() -> None:
    for syntax in ("1.2.840.10008.1.2.4.100", "1.2.840.10008.1.2.4.102.1", "1.2.840.10008.1.2.4.108"):
        assert is_video(syntax)
        assert reason(encapsulated(items(b"abcd"), module(), syntax)) is Reason.UNSUPPORTED
    assert not any(
        is_video(s) for s in ("1.2.840.10008.1.2.4.110", "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.¹01")
    )
