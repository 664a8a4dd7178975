"""Native pixel data: every width, byte order and arrangement, and what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.dicom.dicom_files import EXPLICIT_BE, module, native, opened

GREY8 = (8, 8, 7)


def test_sixteen_bits_that_all_count_are_a_view_of_the_file() -> None:
    pixels = np.array([[1, 2], [3, 65535]], "<u2")
    frame = decode_frame(opened(native(pixels.tobytes(), module())), 0)
    assert frame.values.tolist() == pixels.tolist()
    assert not frame.values.flags.owndata
    assert (frame.photometric, frame.flags, frame.valid_rows) == ("MONOCHROME2", (), 2)


def test_big_endian_words_are_turned() -> None:
    data = native(b"\0\1\0\2\0\3\xff\xfe", module(signed=True, order=">"), syntax=EXPLICIT_BE)
    assert decode_frame(opened(data), 0).values.tolist() == [[1, 2], [3, -2]]


def test_two_cells_share_a_big_endian_word() -> None:
    """Three pixels in the first frame: the second begins inside a word (PS3.5 8.1.1, annex D)."""
    elements = module(1, 3, bits=GREY8, frames="2", order=">")
    file = opened(native(b"\2\1\4\3\6\5", elements, syntax=EXPLICIT_BE))
    assert [decode_frame(file, n).values.tolist() for n in (0, 1)] == [[[1, 2, 3]], [[4, 5, 6]]]
    in_bytes = opened(native(b"\1\2\3\4\5\6", elements, syntax=EXPLICIT_BE, vr="OB"))
    assert decode_frame(in_bytes, 1).values.tolist() == [[4, 5, 6]]


def test_frames_of_single_bits_begin_inside_a_byte() -> None:
    """Three pixels a frame, the lowest bit first: 101 110 011."""
    file = opened(native(b"\x9d\1", module(1, 3, bits=(1, 1, 0), frames="3")))
    assert [decode_frame(file, n).values.tolist() for n in range(3)] == [[[1, 0, 1]], [[1, 1, 0]], [[0, 1, 1]]]


def test_planes_of_colours_become_pixels_within_each_frame() -> None:
    elements = module(1, 2, samples=3, bits=GREY8, photometric="RGB", planar=1, frames="2")
    file = opened(native(bytes(range(12)), elements))
    assert decode_frame(file, 0).values.tolist() == [[[0, 2, 4], [1, 3, 5]]]
    assert decode_frame(file, 1).values.tolist() == [[[6, 8, 10], [7, 9, 11]]]


def test_two_pixels_share_their_chrominance() -> None:
    elements = module(1, 4, samples=3, bits=GREY8, photometric="YBR_FULL_422")
    expected = [[[1, 3, 4], [2, 3, 4], [5, 7, 8], [6, 7, 8]]]
    assert decode_frame(opened(native(bytes(range(1, 9)), elements)), 0).values.tolist() == expected
    # Some writers repeat it in the file, too.
    full = native(bytes(range(12)), elements)
    assert decode_frame(opened(full), 0).values[0, 1].tolist() == [3, 4, 5]


@pytest.mark.parametrize(("kind", "tag", "vr"), [("<f4", 0x7FE00008, "OF"), ("<f8", 0x7FE00009, "OD")])
def test_floating_point_values_are_kept(kind: str, tag: int, vr: str) -> None:
    pixels = np.array([[0.5, -1e-9], [3e8, 0]], kind)
    file = opened(native(pixels.tobytes(), module(bits=(pixels.itemsize * 8,) * 3), vr=vr, tag=tag))
    values = decode_frame(file, 0).values
    assert values.dtype == pixels.dtype
    assert values.tolist() == pixels.tolist()


def test_a_pad_byte_is_no_frame_and_an_extra_frame_is_left_out() -> None:
    one = module(1, 1, bits=GREY8)
    assert opened(native(b"\7\0", one)).flags == ()
    assert opened(native(b"\7\7\7\7", one)).flags == (Flag.EXCESS_FRAMES,)
    assert opened(native(bytes(12), module())).flags == ()
    assert opened(native(bytes(16), module())).flags == (Flag.EXCESS_FRAMES,)


@pytest.mark.parametrize("salvage", [False, True])
def test_short_pixel_data_are_refused_or_salvaged_row_by_row(salvage: bool) -> None:
    pixels = np.array([[900, 800], [700, 600], [500, 400]], "<u2").tobytes()
    data = native(pixels[:10], module(3, 2))
    if not salvage:
        with pytest.raises(SampleError) as caught:
            decode_frame(opened(data), 0)
        assert caught.value.reason is Reason.TRUNCATED
        return
    frame = decode_frame(opened(data), 0, salvage=True)
    assert frame.values.tolist() == [[900, 800], [700, 600], [600, 600]]
    assert (frame.valid_rows, frame.flags) == (2, (Flag.SALVAGED,))


@pytest.mark.parametrize(
    ("photometric", "planar", "fill"), [("RGB", 0, [0, 0, 0]), ("YBR_FULL", 0, [0, 128, 128]), ("RGB", 1, None)]
)
def test_missing_rows_of_colours_are_black_and_missing_planes_cannot_be_salvaged(
    photometric: str, planar: int, fill: list[int] | None
) -> None:
    elements = module(2, 1, samples=3, bits=GREY8, photometric=photometric, planar=planar)
    file = opened(native(b"\1\2\3\4", elements))
    if fill is None:
        with pytest.raises(SampleError):
            decode_frame(file, 0, salvage=True)
    else:
        assert decode_frame(file, 0, salvage=True).values.tolist() == [[[1, 2, 3]], [fill]]


def test_a_frame_of_which_nothing_is_there_cannot_be_salvaged() -> None:
    file = opened(native(bytes(8), module(frames="2")))
    decode_frame(file, 0, salvage=True)
    with pytest.raises(SampleError) as caught:
        decode_frame(file, 1, salvage=True)
    assert caught.value.reason is Reason.TRUNCATED
    with pytest.raises(IndexError):
        decode_frame(file, 2)


def test_a_length_beyond_the_file_is_cut_to_it() -> None:
    data = native(bytes(8), module(), length=0xFFFFFFF0)
    assert decode_frame(opened(data), 0).values.shape == (2, 2)
