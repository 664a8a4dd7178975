"""Thousands of damaged files through a real build: each ends as a row, and none takes anything else down."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import shardforge
from shardforge.shards.catalogue import Reason
from shardforge.shards.manifest import Manifest
from shardforge.shards.verify import verify
from tests.built import payload
from tests.built import rows as rows_of
from tests.pictures import write_picture

_LARGEST = 60_000
"""Bytes; larger corpus files only slow the test down."""


def mutated(data: bytes, other: bytes, draw: np.random.Generator) -> bytes:
    """Flipped bits, a cut, a splice of two files, or a stretch of noise."""
    broken = bytearray(data)
    match int(draw.integers(4)):
        case 0:
            for _ in range(int(draw.integers(1, 20))):
                broken[int(draw.integers(len(broken)))] ^= 1 << int(draw.integers(8))
        case 1:
            del broken[int(draw.integers(1, len(broken))) :]
        case 2:
            cut = int(draw.integers(1, len(broken)))
            broken[cut:] = other[int(draw.integers(len(other))) :]
        case _:
            start, count = int(draw.integers(len(broken))), int(draw.integers(1, 64))
            broken[start : start + count] = draw.integers(0, 256, count, dtype=np.uint8).tobytes()
    return bytes(broken)


def write_damaged(corpus: Path, folder: Path, count: int, draw: np.random.Generator) -> None:
    files = sorted(path for path in (corpus / "images").rglob("*") if path.is_file())
    contents = [path.read_bytes() for path in files if 0 < path.stat().st_size <= _LARGEST]
    folder.mkdir()
    for i in range(count):
        one, two = (contents[int(draw.integers(len(contents)))] for _ in range(2))
        (folder / f"{i:05d}.jpg").write_bytes(mutated(one, two, draw))


def test_every_damaged_file_ends_as_a_row(corpus: Path, tmp_path: Path) -> None:
    raw, count = tmp_path / "raw", 6000
    write_damaged(corpus, raw, count, np.random.default_rng(11))
    report = shardforge.build(raw, tmp_path / "out", size=32, max_errors="100%", shard_samples=500, quiet=True)
    assert report.items == count
    assert report.samples + report.failed == count
    shards = [shard.name for split in Manifest.read(tmp_path / "out").splits.values() for shard in split.shards]
    rows = pa.concat_tables([pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in shards])
    assert sorted(rows["source"].to_pylist()) == [f"{i:05d}.jpg" for i in range(count)]
    reasons = Counter(reason for reason in rows["reason"].to_pylist() if reason)
    assert set(reasons) <= {str(reason) for reason in Reason}
    # A decoder that dies, hangs or eats memory is contained, but none of those in use should do so at all.
    assert not set(reasons) & {Reason.DECODER_CRASH, Reason.TIMEOUT, Reason.OUT_OF_MEMORY}
    assert report.samples > count / 10
    assert report.failed > count / 10
    assert verify(tmp_path / "out").damage == ()


def test_damaged_files_leave_the_bytes_of_their_neighbours_alone(corpus: Path, tmp_path: Path) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    for raw in (alone, beside):
        for number in range(20):
            write_picture(raw / "good" / f"{number}.png", number, 50, 40)
    write_damaged(corpus, beside / "bad", 200, np.random.default_rng(12))
    found = []
    for raw in (alone, beside):
        out = tmp_path / f"out-{raw.name}"
        report = shardforge.build(raw, out, size=32, max_errors="100%", quiet=True)
        good = {source: row for source, row in rows_of(out).items() if source.startswith("good/")}
        found.append({source: payload(out, row, "jpg") for source, row in good.items()})
        assert (len(good), bool(report.failed)) == (20, raw is beside)
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 20
