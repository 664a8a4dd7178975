from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardforge.codecs.header import read_header
from shardforge.codecs.limits import Limits
from shardforge.errors import SampleError
from shardforge.geometry.orientation import oriented_size
from shardforge.shards.catalogue import Reason
from tests.codecs.image_files import LIMITS, corpus_file, png_of, rgb_scene


def test_header_tells_the_upright_size_without_decoding(corpus: Path) -> None:
    wrong = []
    for line in (corpus / "expected.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        expect = fact["expect"]
        if fact["kind"] != "image" or "width" not in expect or expect.get("reason"):
            continue
        if fact["path"].endswith("L_8__29x100.heif"):
            continue  # 64 x 100 pixels are stored, and judged; its clean aperture is applied when decoding
        header = read_header((corpus / fact["path"]).read_bytes(), LIMITS)
        size = oriented_size(header.width, header.height, header.orientation or 1)
        if size != (expect["width"], expect["height"]):
            wrong.append((fact["path"], size))
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "icc"),
    [("color/icc_profile.png", 3144), ("color/rgb.jpg", 3144), ("color/made_icc_p3_5_segments.jpg", 2488)],
)
def test_profile_is_put_together(corpus: Path, name: str, icc: int) -> None:
    profile = read_header(corpus_file(corpus, name), LIMITS).icc
    assert profile is not None
    assert len(profile) == icc == int.from_bytes(profile[:4], "big")


@pytest.mark.parametrize(
    "limits",
    [Limits(pixels=5), Limits(source_bytes=40), Limits(pixels=24, source_bytes=30)],
    ids=["pixels", "bytes", "both"],
)
def test_limits_are_judged_before_decoding(limits: Limits) -> None:
    with pytest.raises(SampleError) as caught:
        read_header(png_of(rgb_scene()), limits)
    assert caught.value.reason is Reason.OVER_BUDGET


def test_picture_exactly_at_the_limits_is_allowed() -> None:
    data = png_of(rgb_scene())
    assert read_header(data, Limits(pixels=24, frames=1, source_bytes=len(data))).width == 6


def test_too_many_frames_are_over_budget(corpus: Path) -> None:
    data = corpus_file(corpus, "anim/chi.gif")
    assert read_header(data, Limits(frames=31)).frames == 31
    with pytest.raises(SampleError) as caught:
        read_header(data, Limits(frames=30))
    assert caught.value.reason is Reason.OVER_BUDGET
