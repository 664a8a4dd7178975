"""YBR to RGB, and more than 8 bits to 8 (PS3.3 C.7.6.3.1.2)."""

from __future__ import annotations

import numpy as np

from shardforge.dicom.colour import to_uint8, ybr_to_rgb


def test_the_check_colours_come_out() -> None:
    ybr = np.array([[[76, 85, 255], [128, 128, 128]], [[0, 128, 128], [255, 128, 128]]], np.uint8)
    assert ybr_to_rgb(ybr).tolist() == [[[254, 0, 0], [128, 128, 128]], [[0, 0, 0], [255, 255, 255]]]


def test_every_colour_is_within_a_rounding_of_the_formula() -> None:
    y, cb, cr = np.meshgrid(*(np.arange(0, 256, 5),) * 3, indexing="ij")
    ybr = np.stack([y, cb, cr], axis=-1).astype(np.uint8)
    blue, red = cb - 128.0, cr - 128.0
    exact = np.stack([y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue], axis=-1)
    assert np.abs(ybr_to_rgb(ybr) - np.clip(exact, 0, 255)).max() <= 0.501


def test_deep_samples_are_reduced_to_their_high_byte() -> None:
    assert to_uint8(np.array([0, 255, 256, 65535], np.uint16), 16).tolist() == [0, 0, 1, 255]
    assert to_uint8(np.array([4095, 16], np.uint16), 12).tolist() == [255, 1]
    plain = np.array([1, 2], np.uint8)
    assert to_uint8(plain, 8) is plain
