"""Damaged DICOM files through whole builds: each ends as rows, and none takes anything else down."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import shardforge
from shardforge.compile.report import BuildReport
from shardforge.shards.catalogue import Reason
from shardforge.shards.verify import verify
from tests.built import payload
from tests.dicom_builds import all_rows
from tests.dicom_made import ROOT_UID, write_enhanced, write_series

_LARGEST = 30_000
"""Bytes; larger corpus files only slow the test down."""
_HEADER = 1500
SEGMENTATION = b"1.2.840.10008.5.1.4.1.1.66."
"""How the SOP classes of segmentations begin (PS3.4 B.5); they become masks, and no rows."""


def mutated(data: bytes, other: bytes, draw: np.random.Generator) -> bytes:
    """Flipped bits in the header or anywhere, other lengths, a cut, a stretch left out or doubled, a splice."""
    broken = bytearray(data)
    end = len(broken)
    at = int(draw.integers(132, max(133, min(end, _HEADER)))) if end > 133 else 0
    match int(draw.integers(7)):
        case 0:
            for _ in range(int(draw.integers(1, 6))):
                broken[min(end - 1, int(draw.integers(max(1, min(end, _HEADER)))))] ^= 1 << int(draw.integers(8))
        case 1:
            for _ in range(int(draw.integers(1, 30))):
                broken[int(draw.integers(end))] ^= 1 << int(draw.integers(8))
        case 2:
            broken[at : at + 4] = draw.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\1\0\0\0"])
        case 3:
            del broken[int(draw.integers(1, end)) :]
        case 4:
            del broken[at : at + int(draw.integers(1, 40))]
        case 5:
            broken[at:at] = broken[at : at + int(draw.integers(1, 400))]
        case _:
            broken[int(draw.integers(1, end)) :] = other[int(draw.integers(len(other))) :]
    return bytes(broken)


def with_instance(data: bytes, number: int) -> bytes:
    """With another SOP instance UID of the same length: copies of one instance would be filtered unread."""
    at = data.find(b"\x08\0\x18\0")
    if at < 0:
        return data
    start, size = (at + 8, data[at + 6]) if data[at + 4 : at + 6] == b"UI" else (at + 8, data[at + 4])
    uid = f"1.2.3.{number:05d}.9".encode()[:size].ljust(size, b"9")
    return data[:start] + uid + data[start + size :]


def write_damaged(corpus: Path, folder: Path, count: int, draw: np.random.Generator) -> None:
    files = sorted(path for path in (corpus / "dicom").rglob("*") if path.is_file())
    # Some stay copies of one instance, to which segmentations refer.
    contents = [path.read_bytes() for path in files if 0 < path.stat().st_size <= _LARGEST]
    folder.mkdir()
    for i in range(count):
        one, two = (contents[int(draw.integers(len(contents)))] for _ in range(2))
        (folder / f"{i:05d}").write_bytes(mutated(with_instance(one, i) if i % 4 else one, two, draw))


def build(raw: Path, out: Path) -> BuildReport:
    return shardforge.build(
        raw, out, kind="dicom", format="png", size=32, max_errors="100%", shard_samples=500,
        burned_in="keep", identifiers="keep", quiet=True,
    )  # fmt: skip


@pytest.mark.parametrize("count", [300, pytest.param(4000, marks=pytest.mark.long)])
def test_every_damaged_file_ends_as_rows(corpus: Path, tmp_path: Path, count: int) -> None:
    raw = tmp_path / "raw"
    write_damaged(corpus, raw, count, np.random.default_rng(23 + count))
    report = build(raw, tmp_path / "out")
    rows = all_rows(tmp_path / "out")
    told = {row["source"] for row in rows}
    assert len({(row["source"], row["frame"]) for row in rows}) == len(rows)
    statuses = Counter(row["status"] for row in rows)
    assert report.items == len(rows) == statuses.total()
    assert report.failed == statuses["failed"]
    unknown = {file["path"] for file in json.loads((tmp_path / "out" / "build.json").read_text())["unknown_files"]}
    files = {path.name: path for path in raw.iterdir()}
    assert not told & unknown
    assert told | unknown <= files.keys()
    for name in files.keys() - told - unknown:
        assert SEGMENTATION in files[name].read_bytes(), name
    reasons = Counter(row["reason"] for row in rows if row["reason"])
    assert set(reasons) <= {str(reason) for reason in Reason}
    # A decoder that dies, hangs or eats memory is contained, but none of those in use should do so at all.
    assert not set(reasons) & {Reason.DECODER_CRASH, Reason.TIMEOUT, Reason.OUT_OF_MEMORY}
    assert statuses["success"] > count / 20
    assert statuses["failed"] > count / 20
    assert verify(tmp_path / "out").damage == ()


def test_damaged_files_leave_the_bytes_of_their_neighbours_alone(corpus: Path, tmp_path: Path) -> None:
    alone, beside = tmp_path / "alone", tmp_path / "beside"
    z = [5.0 * i for i in range(12)]
    for raw in (alone, beside):
        volume = np.random.default_rng(25).integers(-1000, 1000, (12, 40, 48)).astype(np.int16)
        write_series(raw / "good", volume, z, WindowCenter=40, WindowWidth=400)
        write_enhanced(raw / "good" / "enhanced", volume[:3], z[:3], [2, 0, 1], SOPInstanceUID=f"{ROOT_UID}.8")
    write_damaged(corpus, beside / "bad", 150, np.random.default_rng(24))
    found = []
    for raw in (alone, beside):
        out = tmp_path / f"out-{raw.name}"
        report = build(raw, out)
        rows = [row for row in all_rows(out) if row["source"].startswith("good/")]
        found.append({(row["source"], row["frame"]): payload(out, row, "png") for row in rows})
        assert (len(rows), bool(report.failed)) == (12 + 3, raw is beside)
    assert found[0] == found[1]
    assert len(set(found[0].values())) >= 12
