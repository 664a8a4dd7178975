"""Which multi-frame files stay open for the frames to come."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydicom.data import get_testdata_file

from shardforge.codecs.dicom.read import read_dicom
from shardforge.codecs.limits import Limits
from shardforge.compile.dicom.opened import Opened, OpenedFiles
from shardforge.compile.planned_item import PlannedItem


def item(name: str, frame: int = 0, frames: int = 3, size: int = 1, beside: int = 0) -> PlannedItem:
    files = {"image": (name.encode(), size), **{f"slice.+{i + 1}": (b"x", 1) for i in range(beside)}}
    return PlannedItem("key", name, files, frame=frame, frames=frames)


@pytest.fixture(scope="module")
def file() -> Opened:
    data = Path(str(get_testdata_file("CT_small.dcm"))).read_bytes()
    return Opened({"image": data}, {"image": "00"}, read_dicom(data, Limits()))


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
    for number in range(30):
        assert files.get(item(str(number))) is None
        files.keep(item(str(number)), file)
    assert all(files.get(item(str(number))) is file for number in range(22, 30))
    assert files.get(item("21")) is None


def test_a_large_file_goes_before_another_one_is_read(file: Opened) -> None:
    files = OpenedFiles()
    large = Opened({"image": bytes((1 << 24) + 1)}, {"image": "00"}, file.file)
    assert files.get(item("small")) is None
    files.keep(item("small"), file)
    assert files.get(item("large")) is None
    files.keep(item("large"), large)
    assert files.get(item("large", 2)) is large
    assert files.get(item("next")) is None
    assert files.get(item("large", 1)) is None
