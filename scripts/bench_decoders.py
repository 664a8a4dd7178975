"""Measures who decodes what fastest, and whether the pixels agree.

    python scripts/bench_decoders.py --repeats 7

For every format of shardforge.codecs.decode.DECODERS: the library chosen there (by its bare call, and as the build
calls it) and the others at hand, on a picture of the photographs that scikit-learn ships. The result is a Markdown
table: the least time in ms per megapixel, and how far the pixels are from the chosen decoder's at most, in levels of
0..255. A library that cannot decode a format is named on standard error. HEIF and PSD are left out: no library here
writes them, and only the chosen one reads them.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import imagecodecs
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.bench.pictures import compose, photographs  # noqa: E402
from shardforge.codecs.decode import DECODERS  # noqa: E402
from shardforge.codecs.header import read_header  # noqa: E402
from shardforge.codecs.limits import Limits  # noqa: E402

Pixels = NDArray[Any]
SIZE = (1600, 1200)
CHOSEN = "as the build calls it"
_PILLOW = {"gif": "GIF", "bmp": "BMP", "pnm": "PPM", "ico": "ICO", "pcx": "PCX", "tga": "TGA"}
_IMAGECODECS: dict[str, Callable[[bytes], Pixels]] = {
    "jpeg": imagecodecs.jpeg8_decode,
    "png": imagecodecs.png_decode,
    "webp": imagecodecs.webp_decode,
    "tiff": imagecodecs.tiff_decode,
    "gif": lambda data: imagecodecs.gif_decode(data, 0),
    "bmp": imagecodecs.bmp_decode,
    "avif": lambda data: imagecodecs.avif_decode(data, numthreads=1),
    "jpeg2000": lambda data: imagecodecs.jpeg2k_decode(data, numthreads=1),
    "jxl": lambda data: imagecodecs.jpegxl_decode(data, 0, numthreads=1),
    "qoi": imagecodecs.qoi_decode,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="the least time of so many counts (default 7)")
    parser.add_argument("--size", type=int, nargs=2, default=SIZE, metavar=("WIDTH", "HEIGHT"))
    options = parser.parse_args(arguments)
    cv2.setNumThreads(1)
    print("| format | decoder | ms/megapixel | largest difference |\n| --- | --- | ---: | ---: |")
    width, height = options.size
    for name, data in written(compose(0, width, height, photographs())):
        for line in measured(name, data, options.repeats):
            print(line, flush=True)
    return 0


def written(picture: Pixels) -> Iterator[tuple[str, bytes]]:
    """Format → a file of it with this picture, uint8 [H, W, 3]; the formats that a library here writes."""
    yield "jpeg", bytes(simplejpeg.encode_jpeg(picture, 90, "RGB", "420"))
    yield "png", bytes(imagecodecs.png_encode(picture, level=6))
    yield "webp", bytes(imagecodecs.webp_encode(picture, level=90, lossless=False))
    deflated = [cv2.IMWRITE_TIFF_COMPRESSION, cv2.IMWRITE_TIFF_COMPRESSION_ADOBE_DEFLATE]
    yield "tiff", cv2.imencode(".tiff", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), deflated)[1].tobytes()
    yield "avif", bytes(imagecodecs.avif_encode(picture, level=90, speed=8, numthreads=1))
    yield "jpeg2000", bytes(imagecodecs.jpeg2k_encode(picture, level=40))
    yield "jxl", bytes(imagecodecs.jpegxl_encode(picture, level=90, effort=3, numthreads=1))
    yield "qoi", bytes(imagecodecs.qoi_encode(picture))
    for name, plugin in _PILLOW.items():
        # An icon's sides end at 256 pixels.
        image = Image.fromarray(picture[:256, :256] if name == "ico" else picture)
        buffer = io.BytesIO()
        (image.quantize() if name == "gif" else image).save(buffer, plugin)
        yield name, buffer.getvalue()


def candidates(name: str) -> dict[str, Callable[[bytes], Pixels]]:
    """Library → how it decodes a file of a format to RGB; whether it can, trying tells."""
    found: dict[str, Callable[[bytes], Pixels]] = {}
    if name == "jpeg":
        found["simplejpeg"] = simplejpeg.decode_jpeg
    if name in _IMAGECODECS:
        found["imagecodecs"] = _IMAGECODECS[name]
    found["cv2"] = _by_opencv
    found["pillow"] = lambda data: np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    return found


def _by_opencv(data: bytes) -> Pixels:
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if decoded is None:
        raise ValueError("it says nothing")
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB))


def measured(name: str, data: bytes, repeats: int) -> Iterator[str]:
    """The table's lines for one file."""
    header = read_header(data, Limits())
    library, decode = DECODERS[name]
    wanted = decode(data, header).values[..., :3]
    pixels = wanted.shape[0] * wanted.shape[1]
    contenders: dict[str, Callable[[], object]] = {f"{library}, {CHOSEN}": lambda: decode(data, header)}
    differences = {f"{library}, {CHOSEN}": "0"}
    for other, run in candidates(name).items():
        try:
            values = run(data)[..., :3]
        except Exception as error:
            print(f"{name}: {other} cannot ({' '.join(str(error).split())[:90]})", file=sys.stderr)
            continue
        same = values.shape == wanted.shape
        differences[other] = str(int(np.abs(values.astype(int) - wanted).max())) if same else f"is {values.shape}"
        contenders[other] = lambda run=run: run(data)  # type: ignore[misc]
    times: dict[str, list[float]] = {other: [] for other in contenders}
    for _ in range(repeats):
        for other, call in contenders.items():
            began = time.perf_counter()
            call()
            times[other].append(time.perf_counter() - began)
    for other in contenders:
        yield f"| {name} | {other} | {min(times[other]) * 1e9 / pixels:.1f} | {differences[other]} |"


if __name__ == "__main__":
    sys.exit(main())
