"""Fragments and the frames that they make up (PS3.5 A.4)."""

from __future__ import annotations

import struct

import imagecodecs
import numpy as np
import pytest

from shardforge.codecs.dicom.fragments import walk_fragments
from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.codecs.dicom.read import DicomFile
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.dicom.dicom_files import encapsulated, explicit, items, module, opened

JPEG_LS = "1.2.840.10008.1.2.4.80"
PICTURES = [np.arange(64, dtype=np.uint16).reshape(8, 8) * factor for factor in (1, 3, 5)]


def even(data: bytes) -> bytes:
    return data + b"\0" * (len(data) % 2)


STREAMS = [even(bytes(imagecodecs.jpegls_encode(picture))) for picture in PICTURES]
HALVES = [part for s in STREAMS for part in (s[: len(s) // 4 * 2], s[len(s) // 4 * 2 :])]


def starts(fragments: list[bytes], every: int) -> list[int]:
    """Offsets of every so many fragments."""
    return [sum(8 + len(fragment) for fragment in fragments[:n]) for n in range(0, len(fragments), every)]


def file_of(value: bytes, frames: int = 3, *more: bytes) -> DicomFile:
    return opened(encapsulated(value, module(8, 8, frames=str(frames)), JPEG_LS, *more))


def check(file: DicomFile) -> None:
    for number, picture in enumerate(PICTURES[: file.frames]):
        assert np.array_equal(decode_frame(file, number).values, picture)


@pytest.mark.parametrize(
    "value",
    [
        items(*STREAMS),
        items(*STREAMS, table=starts(STREAMS, 1)),
        items(*HALVES, table=starts(HALVES, 2)),
        # No table: a frame begins where a fragment begins like a codestream.
        items(*HALVES),
        # A table that points nowhere is not believed.
        items(*HALVES, table=(0, 5, 7)),
        items(*STREAMS, table=(0, 0, 0)),
        items(*STREAMS, table=(5, *starts(STREAMS, 1)[1:])),
        items(*STREAMS, table=(0,)),
    ],
)
def test_every_frame_is_found(value: bytes) -> None:
    file = file_of(value)
    assert file.flags == ()
    check(file)


def test_the_extended_offset_table_counts_first() -> None:
    table = struct.pack("<3Q", *starts(HALVES, 2))
    check(file_of(items(*HALVES), 3, explicit(0x7FE00001, "OV", table)))


def test_all_fragments_of_a_single_frame_are_joined() -> None:
    check(file_of(items(*HALVES[:2]), 1))
    stream = STREAMS[0]
    check(file_of(items(*(stream[n : n + 2] for n in range(0, len(stream), 2))), 1))


def test_excess_frames_are_left_out() -> None:
    file = file_of(items(*STREAMS), 2)
    assert file.flags == (Flag.EXCESS_FRAMES,)
    check(file)


def test_a_missing_delimiter_is_noticed_and_garbage_behind_it_is_not_read() -> None:
    file = file_of(items(*STREAMS, delimited=False))
    assert file.flags == (Flag.MISSING_SEQUENCE_DELIMITER,)
    check(file)
    check(file_of(items(*STREAMS) + b"\xfe\xff\0\xe0garbage" * 9))


def test_a_delimiter_inside_a_fragment_ends_nothing() -> None:
    found = walk_fragments(items(b"ab\xfe\xff\xdd\xe0\0\0\0\0cd", b"ef"), 0)
    assert [fragment.end - fragment.start for fragment in found.fragments] == [12, 2]
    assert found.delimited


def test_frames_behind_the_end_of_the_file_are_truncated_the_others_not() -> None:
    whole = encapsulated(items(*STREAMS), module(8, 8, frames="3"), JPEG_LS)
    file = opened(whole[: -len(STREAMS[2]) // 2])
    for number in (0, 1):
        assert np.array_equal(decode_frame(file, number).values, PICTURES[number])
    with pytest.raises(SampleError) as caught:
        decode_frame(file, 2)
    assert caught.value.reason is Reason.TRUNCATED
    fewer = file_of(items(*STREAMS[:2]))
    with pytest.raises(SampleError) as caught:
        decode_frame(fewer, 2)
    assert caught.value.reason is Reason.TRUNCATED


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reason.TRUNCATED),
        (b"no items at all", Reason.CORRUPT),
        (b"\xfe\xff\0\xe0" + struct.pack("<I", 2**31), Reason.TRUNCATED),
    ],
)
def test_what_is_no_sequence_of_items_is_refused(value: bytes, reason: Reason) -> None:
    with pytest.raises(SampleError) as caught:
        walk_fragments(value, 0)
    assert caught.value.reason is reason


def test_a_length_beyond_the_file_ends_at_its_end() -> None:
    found = walk_fragments(items()[:8] + b"\xfe\xff\0\xe0\xf0\xff\xff\xffabc", 0)
    (fragment,) = found.fragments
    assert (fragment.end - fragment.start, fragment.whole) == (3, False)
