"""Which multi-frame files stay open for the frames to come, and how much of them is read."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pydicom.data import get_testdata_file

from shardforge.codecs.dicom.fragments import Fragment
from shardforge.codecs.dicom.read import read_dicom
from shardforge.codecs.limits import Limits
from shardforge.compile.dicom.opened import Opened, OpenedFiles
from shardforge.compile.dicom.sample import DicomSampleMaker
from shardforge.compile.planned_item import PlannedItem, SampleSettings
from shardforge.compile.sample import Sample
from shardforge.recipe import Recipe
from shardforge.shards.catalogue import Status
from shardforge.shards.manifest import FieldInfo, LabelInfo
from tests.dicom_made import write_enhanced

SETTINGS = SampleSettings(
    Recipe.model_validate({"kind": "dicom", "format": "npy", "resize": "none", "dicom": {"window": "none"}}),
    {"npy": FieldInfo("image")},
    LabelInfo("none"),
    "npy",
)


def item(name: str, frame: int = 0, frames: int = 3, size: int = 1, beside: int = 0) -> PlannedItem:
    files = {"image": (name.encode(), size), **{f"slice.+{i + 1}": (b"x", 1) for i in range(beside)}}
    return PlannedItem("key", name, files, frame=frame, frames=frames)


@pytest.fixture(scope="module")
def file() -> Opened:
    data = Path(str(get_testdata_file("CT_small.dcm"))).read_bytes()
    return Opened(data, "00", read_dicom(data, Limits()))


def test_frames_of_one_file_find_it_open(file: Opened) -> None:
    files = OpenedFiles()
    assert files.get(item("a")) is None
    files.keep(item("a"), file)
    assert files.get(item("a", 2)) is file
    # As it was when the build was planned, or it is another one.
    assert files.get(item("a", 2, size=2)) is None
    for other in (item("b", frames=1), item("c", beside=1)):
        files.keep(other, file)
        assert files.get(other) is None


def test_those_asked_for_last_stay_and_no_more_than_a_few(file: Opened) -> None:
    files = OpenedFiles()
    for number in range(200):
        assert files.get(item(str(number))) is None
        files.keep(item(str(number)), file)
    assert all(files.get(item(str(number))) is file for number in range(136, 200))
    assert files.get(item("135")) is None


@pytest.mark.parametrize("large", ["data", "header", "fragments"])
def test_a_large_file_goes_before_another_one_is_read(file: Opened, large: str) -> None:
    pixels = replace(file.file.pixels, start=1 << 22)
    more: dict[str, Any] = {"data": bytes((1 << 24) + 1)} if large == "data" else {"pixels": pixels}
    if large == "fragments":
        more = {"fragments": ((Fragment(0, 8, 8),) * 100_000,)}
    files, found = OpenedFiles(), replace(file, file=replace(file.file, **more))
    assert files.get(item("small")) is None
    files.keep(item("small"), file)
    assert files.get(item("large")) is None
    files.keep(item("large"), found)
    assert files.get(item("large", 2)) is found
    assert files.get(item("next")) is None
    assert files.get(item("large", 1)) is None


def frames_of(root: Path, files: int, frames: int, side: int) -> Iterator[tuple[PlannedItem, int]]:
    """Frame 0 of every file, then frame 1 …, each with the value of all its pixels."""
    for number in range(files):
        values = (100 * number + np.arange(frames)).astype(np.int16)
        volume = np.broadcast_to(values[:, None, None], (frames, side, side))
        write_enhanced(root / str(number), volume, [float(z) for z in range(frames)], range(frames))
    for frame in range(frames):
        for number in range(files):
            name = str(number)
            yield item(name, frame, frames, (root / name).stat().st_size), 100 * number + frame


def value_of(sample: Sample) -> int:
    assert sample.outcome.status is Status.SUCCESS, sample
    pixels = np.load(io.BytesIO(sample.members["npy"]))
    assert (pixels == pixels.flat[0]).all()
    return int(pixels.flat[0])


@pytest.mark.parametrize(
    ("files", "frames", "side"), [(3, 24, 600), (150, 3, 200)], ids=["large files", "more than stay open"]
)
def test_frames_in_any_order_cost_no_more_than_themselves(tmp_path: Path, files: int, frames: int, side: int) -> None:
    items = list(frames_of(tmp_path, files, frames, side))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    make = DicomSampleMaker(SETTINGS, tmp_path, None)
    before = psutil.Process().io_counters().read_chars
    for planned, value in items:
        sample = make(planned)
        assert value_of(sample) == value
    # Once to hash each file, once for its frames, and its header whenever it is opened.
    headers = files * frames * (1 << 15)
    assert psutil.Process().io_counters().read_chars - before < 2.2 * total + headers
    digest = hashlib.sha256((tmp_path / planned.source).read_bytes()).hexdigest()
    assert sample.outcome.source_sha256 == digest


def test_a_file_that_is_written_into_while_a_frame_is_made_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is another file's."""
    items = [planned for planned, _ in frames_of(tmp_path, 1, 4, 30)]
    path, make = tmp_path / "0", DicomSampleMaker(SETTINGS, tmp_path, None)
    read = DicomSampleMaker._frame

    def written_before(self: DicomSampleMaker, *which: Any) -> Any:
        content = path.read_bytes()
        path.write_bytes(content[:-128] + np.full(64, 77, "<i2").tobytes())
        return read(self, *which)

    monkeypatch.setattr(DicomSampleMaker, "_frame", written_before)
    assert make(items[3]).outcome.reason == "changed"
    monkeypatch.undo()
    made = make(items[3])
    assert made.outcome.status is Status.SUCCESS
    assert made.outcome.source_sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_is_written_into_between_two_frames_is_read_anew(tmp_path: Path) -> None:
    items = [planned for planned, _ in frames_of(tmp_path, 1, 4, 8)]
    path, make = tmp_path / "0", DicomSampleMaker(SETTINGS, tmp_path, None)
    assert value_of(make(items[0])) == 0
    content = path.read_bytes()
    changed = content[:-128] + np.full(64, 77, "<i2").tobytes()
    path.write_bytes(changed)
    os.utime(path, ns=(0, 0))
    last = make(items[3])
    assert value_of(last) == 77
    assert last.outcome.source_sha256 == hashlib.sha256(changed).hexdigest()
    path.write_bytes(content[:-1])
    assert make(items[2]).outcome.reason == "changed"
    path.unlink()
    assert make(items[1]).outcome.reason == "missing_file"
