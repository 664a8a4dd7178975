"""Keeping JPEGs with damaged data on request, and never with a part missing."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shardforge.codecs.decode import Picture, decode
from shardforge.codecs.jpeg_segments import SOS, walk
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.image_files import LIMITS, corpus_file, outcome
from tests.pictures import picture

WIDTH, HEIGHT = 320, 240


def jpeg(progressive: bool) -> bytes:
    buffer = io.BytesIO()
    grain = np.random.default_rng(0).integers(0, 40, (HEIGHT, WIDTH, 1))
    scene = (picture(3, WIDTH, HEIGHT) * 0.8 + grain).astype(np.uint8)
    Image.fromarray(scene).save(buffer, "JPEG", quality=92, progressive=progressive)
    return buffer.getvalue()


def kept(data: bytes, reduced: bool = False) -> Picture | Reason:
    try:
        return decode(
            data,
            channels=3,
            background=(0, 0, 0),
            limits=LIMITS,
            keep_damaged=True,
            needed=(lambda width, height: (width // 4, height // 4)) if reduced else None,
        )
    except SampleError as error:
        return error.reason


def damaged(data: bytes, seed: int) -> bytes:
    """A few bytes in the midst of a scan replaced, none of them by a marker."""
    rng = random.Random(seed)
    scan = rng.choice([s for s in walk(data, whole=True).segments if s.marker == SOS and s.scan_end - s.end > 300])
    at = rng.randrange(scan.end + 50, scan.scan_end - 200)
    return data[:at] + bytes(rng.randrange(1, 255) for _ in range(16)) + data[at + 16 :]


def test_a_file_that_fails_as_corrupt_is_kept_and_flagged_on_request(corpus: Path) -> None:
    data = corpus_file(corpus, "broken/made_corrupt_scan.jpg")
    assert outcome(data) is Reason.CORRUPT
    for reduced in (False, True):
        found = kept(data, reduced)
        assert isinstance(found, Picture)
        assert found.flags[:2] == (Flag.SUSPECT, Flag.CORRUPT_DATA)
        assert not found.untouched
    whole = kept(data)
    assert isinstance(whole, Picture)
    assert np.array_equal(whole.pixels, np.asarray(Image.open(io.BytesIO(data)).convert("RGB")))


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.97])
@pytest.mark.parametrize("end", [b"", b"\xff\xd9"])
def test_a_picture_with_a_part_missing_is_never_kept(progressive: bool, share: float, end: bytes) -> None:
    data = jpeg(progressive)
    cut = data[: int(len(data) * share)] + end
    assert kept(cut) in (Reason.TRUNCATED, Reason.CORRUPT)
    assert kept(cut, reduced=True) in (Reason.TRUNCATED, Reason.CORRUPT)


def test_damage_and_a_missing_part_together_are_not_kept() -> None:
    data = jpeg(False)
    both = damaged(data, 1)[: len(data) * 3 // 4] + b"\xff\xd9"
    assert kept(both) in (Reason.TRUNCATED, Reason.CORRUPT)


@pytest.mark.parametrize("progressive", [False, True])
def test_more_is_kept_than_by_default_and_all_of_it_is_flagged(progressive: bool) -> None:
    data = jpeg(progressive)
    more = 0
    for seed in range(30):
        file = damaged(data, seed)
        before, after = outcome(file), kept(file)
        if isinstance(before, Picture):
            assert isinstance(after, Picture)
            assert np.array_equal(before.pixels, after.pixels)
            assert before.flags == after.flags
        elif isinstance(after, Picture):
            more += 1
            assert {Flag.SUSPECT, Flag.CORRUPT_DATA} <= set(after.flags)
    assert more > 0


def test_other_reasons_stay(corpus: Path) -> None:
    for name in ("made_truncated_baseline_60pct.jpg", "made_truncated_progressive_60pct.jpg", "made_soi_only.jpg"):
        assert kept(corpus_file(corpus, f"broken/{name}")) is Reason.TRUNCATED
    assert kept(corpus_file(corpus, "broken/made_zero_byte.jpg")) is Reason.EMPTY
