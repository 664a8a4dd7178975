"""Bytes left over before a JPEG's end marker: padding is harmless, data mean that the decoder has lost its place."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import simplejpeg
from sklearn.datasets import load_sample_image

from shardforge.codecs.decode import decode
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason

PHOTO = np.ascontiguousarray(load_sample_image("flower.jpg")[::3, ::3])
DATA = bytes(simplejpeg.encode_jpeg(PHOTO, quality=85))
SCAN = DATA.index(b"\xff\xda")


def kept(data: bytes, keep_damaged: bool = False) -> tuple[Flag, ...]:
    return decode(data, channels=3, background=(0, 0, 0), limits=Limits(), keep_damaged=keep_damaged).flags


@pytest.mark.parametrize("padding", [b"\0", b"\0" * 500, b"\xff" * 7, b"\0\xff\0\0"])
def test_padding_is_kept_and_flagged_at_most(padding: bytes) -> None:
    flags = kept(DATA[:-2] + padding + DATA[-2:])
    assert set(flags) <= {Flag.SUSPECT, Flag.EXTRANEOUS_BYTES}


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("end", [b"", b"\xff\xd9"])
@pytest.mark.parametrize("restarts", [0, 1])
def test_zeros_in_the_place_of_data_are_no_padding(share: float, end: bytes, restarts: int) -> None:
    # A file that was allocated and never written to its end.
    done, coded = cv2.imencode(".jpg", PHOTO, [cv2.IMWRITE_JPEG_RST_INTERVAL, restarts])
    assert done
    data = coded.tobytes()
    written = int(len(data) * share)
    for keep_damaged in (False, True):
        with pytest.raises(SampleError) as caught:
            kept(data[:written] + bytes(len(data) - written) + end, keep_damaged)
        assert caught.value.reason in (Reason.TRUNCATED, Reason.CORRUPT)


def test_no_flipped_bit_leaves_a_ruined_picture_that_is_called_harmless() -> None:
    draw, judged = np.random.default_rng(5), []
    for _ in range(300):
        broken = bytearray(DATA)
        broken[int(draw.integers(SCAN + 20, len(DATA) - 40))] ^= 1 << int(draw.integers(8))
        try:
            judged.append(Flag.EXTRANEOUS_BYTES in kept(bytes(broken)))
        except SampleError as error:
            judged.append(error.reason)
    # Most flips decode into something without any complaint, which nobody can notice.
    assert True not in judged
    assert judged.count(Reason.CORRUPT) > 20
