"""The decoder benchmark measures every format it can write, with equal pixels where the standard leaves no choice."""

from __future__ import annotations

import math

import pytest

from scripts import bench_decoders
from shardforge.codecs.decode import DECODERS


@pytest.mark.filterwarnings("ignore:image file could not be identified")
def test_every_format_is_measured_and_the_libraries_agree(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_decoders.main(["--repeats", "1", "--size", "200", "120"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    chosen = {name: decoder for name, decoder, _, _ in rows if bench_decoders.CHOSEN in decoder}
    assert set(chosen) == set(DECODERS) - {"heif", "psd"}
    assert all(decoder.startswith(DECODERS[name][0]) for name, decoder in chosen.items())
    assert all(math.isfinite(float(time)) and float(time) > 0 for _, _, time, _ in rows)
    for name, decoder, _, difference in rows:
        # Of a lossy wavelet's inverse the last bit is left to the decoder.
        assert int(difference) <= (name == "jpeg2000"), (name, decoder)
    assert {decoder for name, decoder, _, _ in rows if name == "jpeg"} >= {
        "simplejpeg",
        "imagecodecs",
        "cv2",
        "pillow",
    }
