"""Windows and VOI tables: the check numbers of the standard's formulas, and laws that hold for all of them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydicom import Dataset
from pydicom.pixels import apply_voi, apply_windowing

from shardforge.dicom.facts import Lut, VoiFunction, Window
from shardforge.dicom.voi import VoiTables, brightness, brightness_table, level_table, levels

ALL = np.arange(-32768, 32768).astype(np.int16)
FUNCTIONS: tuple[VoiFunction, ...] = ("LINEAR", "LINEAR_EXACT", "SIGMOID")

# Windows as headers have them: decimals with a few digits.
centers = st.integers(-40_000, 40_000).map(lambda number: number / 8)
widths = st.integers(1, 40_000).map(lambda number: number / 8)
windows = st.builds(Window, centers, widths, st.sampled_from(FUNCTIONS))


def window_of(function: VoiFunction, center: float, width: float) -> Window:
    return Window(center, width, function)


def by_the_standard(x: int, window: Window) -> float:
    """The cases of PS3.3 C.11.2.1.2.1, C.11.2.1.3.1 and C.11.2.1.3.2 from 0 to 1, in rational numbers but for exp."""
    c, w = Fraction(window.center), Fraction(window.width)
    if window.function == "SIGMOID":
        power = float(-4 * (x - c) / w)
        return 0.0 if power > 700 else 1 / (1 + math.exp(power))
    if window.function == "LINEAR" and w >= 1:
        if x <= c - Fraction(1, 2) - (w - 1) / 2:
            return 0.0
        return 1.0 if x > c - Fraction(1, 2) + (w - 1) / 2 else float((x - (c - Fraction(1, 2))) / (w - 1) + 0.5)
    if x <= c - w / 2:
        return 0.0
    return 1.0 if x > c + w / 2 else float((x - c) / w + Fraction(1, 2))


CHECKS: list[tuple[Window, list[int], list[int]]] = [
    (window_of("LINEAR", 40, 400), [-160, -159, 0, 39, 40, 41, 239, 240], [0, 1, 102, 127, 128, 128, 255, 255]),
    (window_of("LINEAR_EXACT", 40, 400), [-160, -159, 0, 40, 239, 240], [0, 1, 102, 128, 254, 255]),
    (window_of("SIGMOID", 40, 400), [-1024, -160, 0, 40, 240, 3071], [0, 30, 102, 128, 225, 255]),
    (window_of("LINEAR", 40, 80), [0, 1, 40, 79, 80], [0, 3, 129, 255, 255]),
    (window_of("LINEAR", -600, 1500), [-1350, -1349, -600, 149, 150], [0, 0, 128, 255, 255]),
    (window_of("LINEAR", 2048, 4096), [0, 1, 2047, 2048, 4094, 4095], [0, 0, 127, 128, 255, 255]),
    (window_of("LINEAR", 0, 100), [-50, -1, 0, 1, 49], [0, 126, 129, 131, 255]),
    (window_of("LINEAR", 32, 8), [27, 28, 31, 32, 35, 36], [0, 0, 109, 146, 255, 255]),
    (window_of("LINEAR", 40, 1), [38, 39, 40, 41], [0, 0, 255, 255]),
    (window_of("LINEAR", 40, 2), [38, 39, 40, 41], [0, 0, 255, 255]),
    (window_of("SIGMOID", 2653, 900), [1000, 2000, 2653, 3000, 4000], [0, 13, 128, 210, 254]),
]


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
@pytest.mark.parametrize(("window", "values", "expected"), CHECKS)
def test_check_numbers(window: Window, values: list[int], expected: list[int], dtype: str) -> None:
    given_values = np.array(values, dtype)
    assert levels(given_values, window).tolist() == expected
    assert VoiTables().levels(given_values, (window,)).tolist() == [expected]


REALS: list[tuple[Window, list[int], list[float]]] = [
    (window_of("LINEAR", 40, 400), [-159, 0, 39, 40, 41], [0.639, 102.256, 127.180, 127.820, 128.459]),
    (window_of("LINEAR_EXACT", 40, 400), [40, 239], [127.5, 254.3625]),
    (window_of("SIGMOID", 40, 400), [-1024, -160, 0, 40, 240], [0.006, 30.397, 102.335, 127.5, 224.603]),
    (window_of("LINEAR", 40, 80), [1, 40], [3.228, 129.114]),
    (window_of("LINEAR", -600, 1500), [-1349, -600], [0.170, 127.585]),
    (window_of("LINEAR", 2048, 4096), [1, 2047, 2048, 4094], [0.0623, 127.469, 127.531, 254.938]),
    (window_of("LINEAR", 0, 100), [-1, 0, 1], [126.212, 128.788, 131.364]),
]


@pytest.mark.parametrize(("window", "values", "expected"), REALS)
def test_check_numbers_before_rounding(window: Window, values: list[int], expected: list[float]) -> None:
    assert (brightness(np.array(values), window) * 255).tolist() == pytest.approx(expected, abs=6e-4)


def test_check_numbers_of_16_bits() -> None:
    found = levels(np.array([0, 40, 239], np.int16), Window(40, 400), bits=16)
    assert found.dtype == np.uint16
    assert found.tolist() == [26280, 32850, 65535]


def test_linear_4096_is_the_identity_of_12_bits() -> None:
    """Note 4 of C.11.2.1.2.1."""
    y = brightness(np.arange(4096), Window(2048, 4096)) * 4095
    assert y.tolist() == pytest.approx(list(range(4096)), abs=1e-9)


def test_the_usual_notebook_recipe_is_another_one() -> None:
    """Why golden tests must say which formula they mean: 320 of the 399 values inside the window differ."""
    x = np.arange(-159, 240)
    usual = ((np.clip(x, -160, 240) + 160) / 400 * 255).astype(np.uint8)
    difference = np.abs(usual.astype(int) - levels(x.astype(np.int16), Window(40, 400)))
    assert [np.count_nonzero(difference == step) for step in range(4)] == [79, 315, 5, 0]


@settings(deadline=None, max_examples=60)
@given(windows, st.integers(-32768, 32767))
@example(Window(40, 1), 39)
@example(Window(39.5, 1), 39)
@example(Window(40, 1.125), 40)
@example(Window(0.5, 0.125), 0)
def test_brightness_is_the_standards(window: Window, x: int) -> None:
    assert float(brightness(np.array(x, np.int16), window)) == pytest.approx(by_the_standard(x, window), abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(windows, st.sampled_from([8, 16]), st.booleans())
def test_a_table_is_the_formula_to_the_bit(window: Window, bits: int, inverted: bool) -> None:
    expected = levels(ALL, window, bits=bits, inverted=inverted)
    assert expected.dtype == f"uint{bits}"
    assert np.array_equal(level_table(window, bits=bits, inverted=inverted)[ALL], expected)
    for values in (ALL, ALL.astype(np.int32), ALL.astype(np.int32) - 40_000, ALL[::-2].astype(np.float32)):
        looked_up = VoiTables().levels(values, (window,), bits=bits, inverted=inverted)
        assert np.array_equal(looked_up[0], levels(values, window, bits=bits, inverted=inverted))
    assert np.array_equal(
        brightness_table(window, inverted=inverted)[ALL],
        brightness(ALL, window, inverted=inverted).astype(np.float32),
    )


@settings(deadline=None, max_examples=60)
@given(windows)
def test_windows_never_fall(window: Window) -> None:
    y = brightness(ALL, window)
    assert (np.diff(y) >= 0).all()
    assert y.min() >= 0
    assert y.max() <= 1


@settings(deadline=None, max_examples=60)
@given(windows, st.sampled_from([8, 16]))
def test_monochrome1_is_the_inverse(window: Window, bits: int) -> None:
    """Levels add up to white, or one more where both lie in the middle between two levels and are rounded up."""
    white = (1 << bits) - 1
    upright, inverse = levels(ALL, window, bits=bits), levels(ALL, window, bits=bits, inverted=True)
    assert np.allclose(brightness(ALL, window) + brightness(ALL, window, inverted=True), 1, atol=1e-12)
    total = upright.astype(int) + inverse
    halfway = np.abs(brightness(ALL, window) * white % 1 - 0.5) < 1e-6
    assert (total[~halfway] == white).all()
    assert np.isin(total, (white, white + 1)).all()


@settings(deadline=None, max_examples=60)
@given(centers, st.integers(1, 7).map(lambda number: number / 8), st.sampled_from([8, 16]))
def test_linear_below_width_1_is_linear_exact(center: float, width: float, bits: int) -> None:
    exact = Window(center, width, "LINEAR_EXACT")
    assert np.array_equal(levels(ALL, Window(center, width), bits=bits), levels(ALL, exact, bits=bits))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("center", "width"), [(40, 400), (-600, 1500), (35.5, 80.25), (1000, 1)])
def test_windows_are_pydicoms(function: VoiFunction, center: float, width: float) -> None:
    ds = Dataset()
    ds.PhotometricInterpretation, ds.BitsStored, ds.PixelRepresentation = "MONOCHROME2", 16, 1
    ds.WindowCenter, ds.WindowWidth, ds.VOILUTFunction = center, width, function
    with np.errstate(over="ignore", divide="ignore"):
        theirs = (apply_windowing(ALL, ds) + 32768) / 65535
    assert np.allclose(brightness(ALL, Window(center, width, function)), theirs, atol=1e-12)


def test_a_window_pydicom_refuses() -> None:
    ds = Dataset()
    ds.PhotometricInterpretation, ds.BitsStored, ds.PixelRepresentation = "MONOCHROME2", 16, 1
    ds.WindowCenter, ds.WindowWidth = 0.5, 0.8
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        apply_windowing(ALL, ds)
    x = np.array([0.1, 0.3, 0.5, 0.9, 1.0], np.float32)
    assert levels(x, Window(0.5, 0.8)).tolist() == [0, 64, 128, 255, 255]


def test_strange_floats_are_black_or_at_the_ends() -> None:
    x = np.array([np.nan, -np.inf, np.inf, 1e38, -1e38], np.float32)
    for function in FUNCTIONS:
        for width in (1, 400):
            # What a cast makes of NaN depends on the processor; it must not come to that.
            with np.errstate(invalid="raise"):
                upright = levels(x, Window(40, width, function))
                inverse = levels(x, Window(40, width, function), inverted=True)
            assert upright.tolist() == [0, 0, 255, 255, 0]
            assert inverse.tolist() == [0, 255, 0, 0, 255]


def lut_of(first: int, bits: int, *entries: int) -> Lut:
    return Lut(first, bits, np.array(entries, np.uint16))


def test_a_voi_table_is_entered_from_its_first_value_and_held_at_its_ends() -> None:
    lut = lut_of(-2, 8, 0, 51, 102, 255)
    x = [-32768, -3, -2, -1, 0, 1, 32767]
    for dtype in ("int16", "int32", "float32"):
        assert levels(np.array(x, dtype), lut).tolist() == [0, 0, 0, 51, 102, 255, 255]
        assert VoiTables().levels(np.array(x, dtype), (lut,))[0].tolist() == [0, 0, 0, 51, 102, 255, 255]
    assert levels(np.array([1], np.int16), lut, bits=16).tolist() == [65535]
    assert levels(np.array([-1.4, -0.6, np.nan], np.float32), lut).tolist() == [51, 51, 0]
    assert levels(np.array(x, np.int16), lut, inverted=True).tolist() == [255, 255, 255, 204, 153, 0, 0]


@pytest.mark.parametrize(
    ("bits", "highest", "white"),
    [(16, 65535, 65535), (12, 4095, 4095), (12, 3000, 4095), (16, 4095, 4095), (16, 30_000, 30_000), (8, 4095, 4095)],
)
def test_white_is_the_declared_bits_unless_the_entries_contradict(bits: int, highest: int, white: int) -> None:
    y = brightness(np.array([0, 1, 2]), lut_of(0, bits, 0, highest // 2, highest))
    assert y.tolist() == pytest.approx([0, highest // 2 / white, highest / white], abs=1e-12)


def test_a_table_of_zeros_is_black() -> None:
    assert levels(np.array([0, 1]), lut_of(0, 8, 0, 0)).tolist() == [0, 0]


def test_voi_tables_are_pydicoms() -> None:
    rng = np.random.default_rng(0)
    entries = rng.integers(0, 4096, 300)
    entries[7] = 4095
    ds = Dataset()
    ds.BitsStored, ds.PixelRepresentation = 16, 0
    ds.VOILUTSequence = [Dataset()]
    ds.VOILUTSequence[0].add_new(0x00283002, "US", [300, 50, 12])
    ds.VOILUTSequence[0].add_new(0x00283006, "US", entries.tolist())
    stored = rng.integers(0, 500, 1000).astype(np.uint16)
    assert np.allclose(
        brightness(stored, Lut(50, 12, entries.astype(np.uint16))), apply_voi(stored, ds) / 4095, atol=1e-12
    )


def test_many_windows_and_tables_of_one_image() -> None:
    values = np.random.default_rng(1).integers(-40, 90, (5, 7)).astype(np.int16)
    values[0, 0] = -4
    vois = (Window(40, 80), lut_of(-5, 8, 1, 200), Window(40, 80, "SIGMOID"), lut_of(-4, 8, 1, 200))
    tables = VoiTables(limit=3)
    for _ in range(2):
        planes = tables.levels(values, vois)
        assert planes.shape == (4, 5, 7)
        for plane, voi in zip(planes, vois, strict=True):
            assert np.array_equal(plane, levels(values, voi))
    assert len(tables._tables) == 3


def test_images_of_different_types_do_not_share_a_table() -> None:
    tables = VoiTables()
    for dtype in ("int32", "int16", "int32", "float32"):
        values = np.array([[-30_000, -1, 30_000]], dtype)
        assert np.array_equal(tables.levels(values, (Window(0, 50_000),))[0], levels(values, Window(0, 50_000)))


def test_whole_values_of_any_size_serve() -> None:
    values = np.array([[-(2**31), 2**31 - 1, 131071, 131072, -65536, -65537]], np.int32)
    for part in (values, values[:, 2:3], values[:, 4:5], values[:, :0]):
        assert np.array_equal(VoiTables().levels(part, (Window(0, 300_000),))[0], levels(part, Window(0, 300_000)))
