"""Arrays beside images: plain numbers are stored as they are, anything else fails its item."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import shardforge
from tests.pictures import write_picture


def npy(shape: str, dtype: str, body: bytes) -> bytes:
    """A version 1.0 file with this header, as NumPy's NEP 1 lays it out."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def test_hostile_and_broken_arrays_cost_one_row_each(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    good = io.BytesIO()
    np.save(good, np.arange(12, dtype=np.float32).reshape(3, 4))
    arrays = {
        "good": good.getvalue(),
        "huge": npy("(1000000, 1000000, 1000)", "<f8", b"x" * 8),
        "short": npy("(4,)", "<f8", b"x" * 8),
        "negative": npy("(-1,)", "<f8", b""),
        "objects": npy("(1,)", "|O", pickle.dumps([print])),
        "text": b"no array",
        "empty": b"",
    }
    for number, (name, data) in enumerate(arrays.items()):
        write_picture(raw / f"{name}.png", number)
        (raw / f"{name}.npy").write_bytes(data)
    report = shardforge.build(raw, tmp_path / "out", max_errors="100%", quiet=True)
    rows = {row["source"]: row for row in pq.read_table(tmp_path / "out" / "train-000000.parquet").to_pylist()}
    assert report.reasons == {"bad_sidecar": 6}
    row = rows["good.png"]
    tar = (tmp_path / "out" / "train-000000.tar").read_bytes()
    assert tar[row["npy_offset"] : row["npy_offset"] + row["npy_size"]] == arrays["good"]
    assert shardforge.open(tmp_path / "out")[0]["npy"].tolist() == np.arange(12).reshape(3, 4).tolist()
