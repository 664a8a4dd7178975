"""Writes the handwritten digits that scikit-learn ships as class folders of PNG files: DIR/LABEL/NNNN.png.

1 797 scans of 8×8 pixels, grey, from the UCI "Optical Recognition of Handwritten Digits" test set. Their 17 levels
(0 to 16) are spread over 0 to 255. Running again writes only what is missing or differs.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits


def encode_scan(levels: np.ndarray) -> bytes:
    """One 8×8 array of levels 0..16 as an 8-bit grey PNG."""
    pixels = np.rint(levels * (255 / 16)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG")
    return buffer.getvalue()


def write_digits(folder: Path) -> tuple[int, int]:
    """Returns (scans in all, files written now)."""
    digits = load_digits()
    written = 0
    for index, (levels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        path = folder / str(label) / f"{index:04d}.png"
        content = encode_scan(levels)
        if path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        written += 1
    return len(digits.target), written


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: make_digits.py DIR")
    folder = Path(sys.argv[1])
    total, written = write_digits(folder)
    print(f"{total} handwritten digits in {folder} ({written} written now)")


if __name__ == "__main__":
    main()
