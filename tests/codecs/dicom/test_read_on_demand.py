"""What a file says does not depend on whether it is in memory; nor what a frame's groups say on how they are read."""

from __future__ import annotations

import copy
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.dataelem import RawDataElement
from pydicom.dataset import Dataset
from pydicom.tag import BaseTag

from shardforge.codecs.dicom import groups
from shardforge.codecs.dicom.pixels import decode_frame
from shardforge.codecs.dicom.read import DicomFile, read_dicom
from shardforge.codecs.file_bytes import Bytes, FileBytes
from shardforge.errors import SampleError
from tests.codecs.dicom.corpus_files import LIMITS
from tests.codecs.dicom.dicom_files import explicit
from tests.dicom_made import write_enhanced

PER_FRAME = 0x52009230


def _told(data: Bytes) -> tuple[Any, ...]:
    try:
        file = read_dicom(data, LIMITS, whole=False)
    except SampleError as error:
        return error.reason, error.detail
    numbers = sorted({0, file.frames // 2, file.frames - 1})
    facts = (file.format, file.frames, file.sop_class, file.transfer_syntax, file.flags, file.pixels, file.fragments)
    return *facts, [_decoded(file, number) for number in numbers]


def _decoded(file: DicomFile, number: int) -> Any:
    try:
        frame = decode_frame(file, number, salvage=True)
    except SampleError as error:
        return error.reason, error.detail
    return frame.values.shape, frame.values.tobytes(), frame.decoder, frame.flags, frame.valid_rows


def test_files_of_the_corpus_are_the_same_on_demand(corpus: Path, tmp_path: Path) -> None:
    paths = [
        path for path in sorted((corpus / "dicom").rglob("*")) if path.is_file() and path.stat().st_size < 1 << 21
    ]
    assert len(paths) > 300
    for path in paths:
        data = path.read_bytes()
        for end in (len(data), len(data) - len(data) // 5, 2 * len(data) // 3):
            part = tmp_path / "part"
            part.write_bytes(data[:end])
            found = FileBytes(os.open(part, os.O_RDONLY))
            assert _told(found) == _told(data[:end]), (path, end)


def _without_lengths(dataset: Dataset) -> None:
    for element in dataset:
        if element.VR == "SQ":
            element.is_undefined_length = True
            for item in element.value:
                item.is_undefined_length_sequence_item = True
                _without_lengths(item)


@pytest.mark.parametrize("order", ["little", "big", "implicit", "no lengths"])
def test_the_groups_of_a_frame_are_its_own(tmp_path: Path, order: str) -> None:
    volume = np.zeros((6, 2, 2), np.int16)
    path = write_enhanced(tmp_path / "x", volume, [3.5 * z for z in range(6)], (3, 0, 4, 1, 5, 2))
    dataset = pydicom.dcmread(path)
    if order == "no lengths":
        _without_lengths(dataset)
    saved = io.BytesIO()
    dataset.save_as(saved, implicit_vr=order == "implicit", little_endian=order != "big", force_encoding=True)
    syntax = {"big": "1.2.840.10008.1.2.2", "implicit": "1.2.840.10008.1.2"}.get(order, "1.2.840.10008.1.2.1")
    data = saved.getvalue().replace(b"1.2.840.10008.1.2.1\0", syntax.encode().ljust(20, b"\0"), 1)
    file = read_dicom(data, LIMITS, whole=False)
    for frame, z in [*enumerate((10.5, 0, 14, 3.5, 17.5, 7)), (0, 10.5)]:
        (_, place), *others = groups.places(file.dataset, frame, 0x00209113)
        assert [float(v) for v in place.ImagePositionPatient] == [10, -20, z]
        assert [origin for origin, _ in others] == ["top"]
    assert [origin for origin, _ in groups.places(file.dataset, 6, 0x00209113)] == ["top"]


def _raw(tag: int, value: bytes) -> dict[BaseTag, RawDataElement]:
    return {BaseTag(tag): RawDataElement(BaseTag(tag), "SQ", len(value), value, 0, False, True)}


def _item(content: bytes) -> bytes:
    return b"\xfe\xff\x00\xe0" + len(content).to_bytes(4, "little") + content


MACRO = 0x00209113
# A sequence of three bytes holds no item; an element cut in its header is none.
BROKEN = explicit(MACRO, "SQ", b"\1\2\3")


@pytest.mark.parametrize(
    "elements",
    [
        pytest.param(_raw(PER_FRAME, b"\1\2\3"), id="of all frames"),
        pytest.param(_raw(PER_FRAME, _item(BROKEN)), id="of the frame"),
        pytest.param(_raw(0x52009229, b"\1\2\3"), id="shared"),
        pytest.param(_raw(0x52009229, _item(BROKEN)), id="one of the shared"),
    ],
)
def test_groups_that_cannot_be_read_are_never_passed_over(elements: dict[BaseTag, Any]) -> None:
    """The frame would be taken for one without a rescale or window of its own."""
    with pytest.raises(SampleError, match="functional groups that cannot be read") as caught:
        list(groups.places(Dataset(elements), 0, MACRO))
    assert caught.value.reason == "corrupt"


@pytest.mark.parametrize("value", [b"", _item(b""), _item(explicit(MACRO, "SQ", b""))])
def test_empty_groups_say_nothing(value: bytes) -> None:
    assert [origin for origin, _ in groups.places(Dataset(_raw(PER_FRAME, value)), 0, MACRO)] == ["top"]


def test_groups_of_the_corpus_are_those_that_pydicom_reads(corpus: Path) -> None:
    compared = 0
    for path in sorted((corpus / "dicom").rglob("*")):
        if not path.is_file():
            continue
        try:
            file = read_dicom(path.read_bytes(), LIMITS, whole=False)
        except SampleError:
            continue
        if PER_FRAME not in file.dataset:
            continue
        wanted = copy.deepcopy(file.dataset)[PER_FRAME].value
        for frame in range(0, len(wanted), 1 + len(wanted) // 20):
            for macro in {element.tag for element in wanted[frame] if element.VR == "SQ" and element.value}:
                origin, found = next(groups.places(file.dataset, frame, macro))
                assert (origin, found) == ("frame", wanted[frame][macro].value[0]), (path, frame)
                compared += 1
    assert compared > 20
