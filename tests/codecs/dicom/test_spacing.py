"""Sizes and places of pixels: in the order of trust, and never invented."""

from __future__ import annotations

import pytest

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.dicom.facts import FrameMeaning
from shardforge.shards.catalogue import Flag
from tests.codecs.dicom.dicom_files import explicit, module, native, opened, sequence

PIXEL, IMAGER, NOMINAL = 0x00280030, 0x00181164, 0x00182010


def ds(tag: int, value: str) -> bytes:
    return explicit(tag, "DS", value)


def place(*more: bytes, frame: int = 0) -> tuple[FrameMeaning, tuple[Flag, ...]]:
    elements = module(frames="2")
    for part in more:
        elements[int.from_bytes(part[:2], "little") << 16 | int.from_bytes(part[2:4], "little")] = part
    return frame_meaning(opened(native(bytes(16), elements)), frame)


@pytest.mark.parametrize(
    ("parts", "spacing", "source"),
    [
        ([ds(PIXEL, "2\\1"), ds(IMAGER, "3\\3")], (2, 1), "pixel_spacing"),
        ([ds(IMAGER, "3\\4"), ds(NOMINAL, "5\\5")], (3, 4), "imager_pixel_spacing"),
        ([ds(NOMINAL, "5\\6")], (5, 6), "nominal_scanned_pixel_spacing"),
        ([ds(PIXEL, ""), ds(IMAGER, "3\\4")], (3, 4), "imager_pixel_spacing"),
        ([], None, None),
    ],
)
def test_the_most_trustworthy_spacing_is_taken(
    parts: list[bytes], spacing: tuple[float, float] | None, source: str | None
) -> None:
    found, flags = place(*parts)
    assert (found.spacing, found.spacing_source, flags) == (spacing, source, ())
    assert found.aspect == (1 if spacing is None else spacing[0] / spacing[1])


@pytest.mark.parametrize("value", ["0\\0", "-1\\1", "1", "1\\2\\3", "a\\b", "1\\"])
def test_an_unusable_spacing_is_none(value: str) -> None:
    found, flags = place(ds(PIXEL, value))
    assert (found.spacing, found.aspect, flags) == (None, 1, (Flag.BAD_DS_VALUE,))


def test_the_aspect_ratio_counts_where_there_is_no_spacing() -> None:
    assert place(explicit(0x00280034, "IS", "2\\1"))[0].aspect == 2
    assert place(explicit(0x00280034, "IS", "2\\1"), ds(PIXEL, "1\\1"))[0].aspect == 1
    assert place(explicit(0x00280034, "IS", "0\\1"))[0].aspect == 1


def region(right: float, down: float, *, units: int = 3, kind: int = 1) -> bytes:
    return b"".join(
        (
            explicit(0x00186012, "US", [kind]),
            explicit(0x00186024, "US", [units]),
            explicit(0x00186026, "US", [units]),
            explicit(0x0018602C, "FD", [right]),
            explicit(0x0018602E, "FD", [down]),
        )
    )


def test_ultrasound_regions_tell_the_spacing_in_centimetres() -> None:
    found, _ = place(sequence(0x00186011, region(0.02, -0.03), region(9, 9, units=4), region(8, 8, kind=3)))
    assert found.spacing == pytest.approx((0.3, 0.2))
    assert found.spacing_source == "ultrasound_region"
    assert place(sequence(0x00186011, region(0.02, 0.03), region(0.05, 0.03)))[0].spacing is None


def test_position_orientation_and_spacing_of_a_frame_stand_in_its_groups() -> None:
    def groups(x: str) -> bytes:
        return sequence(0x00209113, ds(0x00200032, f"{x}\\2\\3"))

    shared = sequence(0x00209116, ds(0x00200037, "1\\0\\0\\0\\1\\0")) + sequence(0x00289110, ds(PIXEL, "4\\4"))
    parts = [sequence(0x52009229, shared), sequence(0x52009230, groups("1"), groups("9")), ds(PIXEL, "7\\7")]
    found, flags = place(*parts, frame=1)
    assert found.position == (9, 2, 3)
    assert found.orientation == (1, 0, 0, 0, 1, 0)
    assert (found.spacing, flags) == ((4, 4), ())


def test_half_a_position_is_none() -> None:
    found, flags = place(ds(0x00200032, "1\\2"), ds(0x00200037, "1\\0\\0\\0\\1\\x"))
    assert (found.position, found.orientation, flags) == (None, None, (Flag.BAD_DS_VALUE,))
