"""What a header says of a frame's values, and what it says badly."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.codecs.dicom.meaning import frame_meaning
from shardforge.dicom.facts import FrameMeaning, Window
from shardforge.shards.catalogue import Flag
from tests.codecs.dicom.dicom_files import explicit, module, native, opened, sequence

CENTER, WIDTH, FUNCTION, VOI_LUTS = 0x00281050, 0x00281051, 0x00281056, 0x00283010
INTERCEPT, SLOPE, MODALITY_LUTS = 0x00281052, 0x00281053, 0x00283000
SHARED, PER_FRAME = 0x52009229, 0x52009230
CT = "1.2.840.10008.5.1.4.1.1.2"


def ds(tag: int, value: str) -> bytes:
    return explicit(tag, "DS", value)


def lut(descriptor: list[int], data: bytes, vr: str = "OW") -> bytes:
    return explicit(0x00283002, "US", [word & 0xFFFF for word in descriptor]) + explicit(0x00283006, vr, data)


def words(*values: int) -> bytes:
    return np.array(values, "<u2").tobytes()


def meaning(*more: bytes, frame: int = 0, **image: object) -> tuple[FrameMeaning, tuple[Flag, ...]]:
    elements = module(**image)  # type: ignore[arg-type]
    for part in more:
        elements[int.from_bytes(part[:2], "little") << 16 | int.from_bytes(part[2:4], "little")] = part
    frames = int(elements[0x00280008][8:].decode()) if 0x00280008 in elements else 1
    return frame_meaning(opened(native(bytes(8 * frames), elements)), frame)


@pytest.mark.parametrize(
    ("slope", "intercept", "expected", "flags"),
    [
        ("2", "-1024", (2, -1024), ()),
        ("00400", " -1.5E2 ", (400, -150), ()),
        ("2\\3", "4\\5", (2, 4), ()),
        (None, "-5", (1, -5), ()),
        ("", "", (1, 0), ()),
        ("0", "-1024", (1, 0), (Flag.INVALID_RESCALE,)),
        ("1,25", "-1024", (1.25, -1024), (Flag.BAD_DS_VALUE,)),
        ("NaN", "0", (1, 0), (Flag.BAD_DS_VALUE, Flag.INVALID_RESCALE)),
        ("1", "inf", (1, 0), (Flag.BAD_DS_VALUE, Flag.INVALID_RESCALE)),
        ("1e999", "0", (1, 0), (Flag.BAD_DS_VALUE, Flag.INVALID_RESCALE)),
        ("one", "0", (1, 0), (Flag.BAD_DS_VALUE, Flag.INVALID_RESCALE)),
        # 16 bits hold values up to 65535, float32 up to 3.4028e38.
        ("5.19e33", "0", (5.19e33, 0), ()),
        ("5.20e33", "0", (1, 0), (Flag.INVALID_RESCALE,)),
        ("1e308", "0", (1, 0), (Flag.INVALID_RESCALE,)),
        ("1e-39", "0", (1, 0), (Flag.INVALID_RESCALE,)),
        ("1", "1e39", (1, 0), (Flag.INVALID_RESCALE,)),
        ("1_0", "0", (1, 0), (Flag.BAD_DS_VALUE, Flag.INVALID_RESCALE)),
    ],
)
def test_a_rescale_is_read_as_far_as_it_can_be_understood(
    slope: str | None, intercept: str, expected: tuple[float, float], flags: tuple[Flag, ...]
) -> None:
    parts = [ds(INTERCEPT, intercept)] + ([] if slope is None else [ds(SLOPE, slope)])
    found, noticed = meaning(*parts)
    assert (found.slope, found.intercept) == expected
    assert set(noticed) == set(flags)
    assert found.modality_from == ("default" if expected == (1, 0) else "top")


def test_a_number_of_another_vr_is_a_number() -> None:
    assert meaning(explicit(SLOPE, "FD", [0.5]), ds(INTERCEPT, "1"))[0].slope == 0.5
    assert meaning(explicit(SLOPE, "UN", b"2.5 "), ds(INTERCEPT, "1"))[0].slope == 2.5


def test_a_modality_table_stands_in_place_of_the_rescale() -> None:
    found, flags = meaning(
        sequence(MODALITY_LUTS, lut([4, -2, 16], words(10, 20, 30, 40))),
        ds(SLOPE, "2"),
        ds(INTERCEPT, "0"),
        signed=True,
    )
    assert found.modality_lut is not None
    assert found.modality_lut.first == -2
    assert found.modality_lut.data.tolist() == [10, 20, 30, 40]
    assert (found.slope, found.modality_from, flags) == (1, "top", ())


@pytest.mark.parametrize(
    ("descriptor", "data", "vr", "signed", "expected"),
    [
        # 0 entries mean 65536.
        ([0, 0, 16], words(*range(65536)), "OW", False, (0, 16, 65536)),
        # One entry a byte, or one a word: the length tells.
        ([3, 5, 8], b"\1\2\3\0", "OW", False, (5, 8, 3)),
        ([3, 5, 8], words(1, 2, 3), "US", False, (5, 8, 3)),
        ([3, -5, 12], words(1, 2, 3), "US", True, (-5, 12, 3)),
        # Without signed pixels the first input has no sign.
        ([3, -5, 16], words(1, 2, 3), "US", False, (65531, 16, 3)),
    ],
)
def test_tables_come_in_many_shapes(
    descriptor: list[int], data: bytes, vr: str, signed: bool, expected: tuple[int, int, int]
) -> None:
    table = meaning(sequence(MODALITY_LUTS, lut(descriptor, data, vr)), signed=signed)[0].modality_lut
    assert table is not None
    assert (table.first, table.bits, len(table.data)) == expected
    if len(table.data) == 3:
        assert table.data.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "item",
    [b"", lut([4, 0, 16], b""), lut([4, 0, 16], words(1, 2)), lut([4, 0], words(1)), lut([1, 0, 99], words(1)),
     lut([3, 0, 0], words(1, 2, 3)), lut([3, 0, 16], words(0, 0, 0)), lut([2, 0, 16], words(7, 7))],
)  # fmt: skip
def test_an_unusable_table_gives_way_to_what_is_beside_it(item: bytes) -> None:
    found, flags = meaning(sequence(MODALITY_LUTS, item), ds(SLOPE, "2"), ds(INTERCEPT, "0"))
    assert (found.modality_lut, found.slope, flags) == (None, 2, (Flag.INVALID_RESCALE,))
    found, flags = meaning(sequence(VOI_LUTS, item), ds(CENTER, "40"), ds(WIDTH, "400"))
    assert (found.voi_luts, found.windows, flags) == ((), (Window(40, 400),), (Flag.INVALID_WINDOW,))
    assert meaning(sequence(VOI_LUTS, item))[0].voi_from == "default"


@pytest.mark.parametrize(
    ("centers", "widths", "expected", "flags"),
    [
        ("40", "400", [(40, 400)], ()),
        ("40\\500", "400\\2000", [(40, 400), (500, 2000)], ()),
        ("40\\500", "400", [(40, 400)], (Flag.WINDOW_COUNT_MISMATCH,)),
        ("40", None, [], (Flag.INVALID_WINDOW,)),
        (None, "40", [], (Flag.INVALID_WINDOW,)),
        ("40", "0", [], (Flag.INVALID_WINDOW,)),
        ("1e39", "1e39", [], (Flag.INVALID_WINDOW,)),
        ("40", "1e39", [], (Flag.INVALID_WINDOW,)),
        ("40\\30", "-5\\7", [(30, 7)], (Flag.INVALID_WINDOW,)),
        ("40", "", [], (Flag.INVALID_WINDOW,)),
        ("", "", [], ()),
        ("40,5", "400", [(40.5, 400)], (Flag.BAD_DS_VALUE,)),
    ],
)
def test_windows_are_paired_as_far_as_they_are_valid(
    centers: str | None, widths: str | None, expected: list[tuple[float, float]], flags: tuple[Flag, ...]
) -> None:
    parts = [ds(tag, text) for tag, text in ((CENTER, centers), (WIDTH, widths)) if text is not None]
    found, noticed = meaning(*parts)
    assert [(window.center, window.width) for window in found.windows] == expected
    assert noticed == flags
    assert found.voi_from == ("top" if expected else "default")


@pytest.mark.parametrize(
    ("stated", "width", "function"),
    [
        ("", "9", "LINEAR"),
        ("SIGMOID ", "9", "SIGMOID"),
        ("linear_exact", "0.5", "LINEAR_EXACT"),
        ("CUBIC", "9", "LINEAR"),
        ("LINEAR", "0.5", "LINEAR_EXACT"),
        ("LINEAR", "1", "LINEAR"),
    ],
)
def test_the_voi_function_is_taken_over(stated: str, width: str, function: str) -> None:
    found, flags = meaning(ds(CENTER, "3"), ds(WIDTH, width), explicit(FUNCTION, "CS", stated))
    assert found.windows == (Window(3, float(width), function),)  # type: ignore[arg-type]
    told = {("LINEAR", "0.5"): (Flag.WIDTH_BELOW_1,), ("CUBIC", "9"): (Flag.INVALID_WINDOW,)}
    assert flags == told.get((stated, width), ())


@pytest.mark.parametrize(
    ("more", "signed", "first"),
    [
        # No modality step: the pixels' own sign.
        ([], True, -1),
        ([], False, 65535),
        # A rescale that can give negative values, and one that cannot.
        ([ds(SLOPE, "1"), ds(INTERCEPT, "-5")], False, -1),
        ([ds(SLOPE, "1"), ds(INTERCEPT, "0")], False, 65535),
        # CT numbers always have a sign.
        ([explicit(0x00080016, "UI", CT), ds(SLOPE, "1"), ds(INTERCEPT, "0")], False, -1),
        # The output of a table never has.
        ([sequence(MODALITY_LUTS, lut([2, 0, 16], words(1, 2)))], True, 65535),
    ],
)
def test_the_first_input_of_a_voi_table_has_the_sign_of_what_comes_in(
    more: list[bytes], signed: bool, first: int
) -> None:
    found, _ = meaning(*more, sequence(VOI_LUTS, lut([2, -1, 8], words(0, 255))), signed=signed)
    assert found.voi_luts[0].first == first


def group(macro: int, content: bytes) -> bytes:
    return sequence(macro, content)


def transformation(slope: str) -> bytes:
    return group(0x00289145, ds(INTERCEPT, "0") + ds(SLOPE, slope))


def window(center: str) -> bytes:
    return group(0x00289132, ds(CENTER, center) + ds(WIDTH, "10"))


def test_a_frames_own_groups_count_before_shared_ones_before_the_top_level() -> None:
    parts = [
        ds(SLOPE, "7"),
        ds(INTERCEPT, "0"),
        sequence(SHARED, transformation("2") + window("20")),
        sequence(PER_FRAME, transformation("3"), window("30"), b""),
    ]
    first, second, third = (meaning(*parts, frame=number, frames="3") for number in range(3))
    assert (first[0].slope, first[0].modality_from, first[0].voi_from) == (3, "frame", "shared")
    assert first[1] == (Flag.FUNCTIONAL_GROUP_CONFLICT,)
    assert (second[0].slope, second[0].modality_from, second[0].windows[0].center) == (2, "shared", 30)
    assert (third[0].slope, third[0].windows[0].center, third[1]) == (2, 20, ())
    assert meaning(*parts[:2], sequence(PER_FRAME, b""), frames="2", frame=1)[0].modality_from == "top"


@pytest.mark.parametrize(
    ("parts", "signed", "expected", "flags"),
    [
        ([explicit(0x00280120, "US", [0])], False, (0, 0), ()),
        ([explicit(0x00280120, "US", [30]), explicit(0x00280121, "US", [0])], False, (0, 30), ()),
        ([explicit(0x00280120, "SS", [-2000])], True, (-2000, -2000), ()),
        ([explicit(0x00280120, "US", [63536])], True, (-2000, -2000), (Flag.PADDING_SIGN,)),
        ([explicit(0x00280120, "US", [0x8000])], True, (-32768, -32768), (Flag.PADDING_SIGN,)),
        ([explicit(0x00280120, "SS", [-1])], False, (65535, 65535), (Flag.PADDING_SIGN,)),
        ([explicit(0x00280121, "US", [5])], False, None, ()),
        ([explicit(0x00280120, "US", b"")], False, None, ()),
    ],
)
def test_padding_has_the_sign_of_the_pixels(
    parts: list[bytes], signed: bool, expected: tuple[int, int] | None, flags: tuple[Flag, ...]
) -> None:
    found, noticed = meaning(*parts, signed=signed)
    assert (found.padding, noticed) == (expected, flags)


@pytest.mark.parametrize(
    ("photometric", "shape", "inverted", "conflict"),
    [
        ("MONOCHROME1", "INVERSE", True, False),
        ("MONOCHROME1", "IDENTITY", True, True),
        ("MONOCHROME2", "IDENTITY", False, False),
        ("MONOCHROME2", "INVERSE", False, True),
        ("MONOCHROME1", "", True, False),
    ],
)
def test_polarity_is_that_of_the_photometric_interpretation(
    photometric: str, shape: str, inverted: bool, conflict: bool
) -> None:
    found, flags = meaning(explicit(0x20500020, "CS", shape), photometric=photometric)
    assert found.inverted is inverted
    assert flags == ((Flag.LUT_SHAPE_CONFLICT,) if conflict else ())


def test_colours_have_no_windows_and_no_rescale() -> None:
    elements = module(samples=3, bits=(8, 8, 7), photometric="RGB")
    strays = (explicit(0x00280120, "US", [0]), ds(CENTER, "40"), ds(WIDTH, "0"), ds(INTERCEPT, "5"), ds(SLOPE, "0"))
    found, flags = frame_meaning(opened(native(bytes(12), elements, *strays)), 0)
    assert (found, flags) == (FrameMeaning(), ())


def test_wrapped_ct_numbers_are_suspected() -> None:
    modality = explicit(0x00080060, "CS", "CT")
    twelve = {"bits": (16, 12, 11)}
    slope = ds(SLOPE, "1")
    assert meaning(modality, ds(INTERCEPT, "-24"), slope, **twelve)[1] == (Flag.UNSIGNED_WRAP_SUSPECT,)
    assert meaning(modality, ds(INTERCEPT, "-1024"), slope, **twelve)[1] == ()
    assert meaning(ds(INTERCEPT, "-24"), slope, **twelve)[1] == ()
    assert meaning(modality, ds(INTERCEPT, "-24"), slope)[1] == ()


def test_doses_are_scaled() -> None:
    dose = explicit(0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.481.2")
    found, _ = meaning(dose, ds(0x3004000E, "1e-6"))
    assert (found.slope, found.intercept, found.modality_from) == (1e-6, 0, "top")
    assert meaning(ds(0x3004000E, "1e-6"))[0].slope == 1
