"""A header that is cut inside an element is damage, never an object without pixels; and none is read for ever."""

from __future__ import annotations

import io
import struct
import zlib

import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence

from shardforge.codecs.dicom.bounded_source import MOST_WORK, BoundedSource, TooMuchWork
from shardforge.codecs.dicom.outline import MOST_DISORDER, Outline
from shardforge.codecs.dicom.parse import parse_dicom
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from tests.codecs.dicom.dicom_files import UNDEFINED, explicit, meta

DEFLATED = "1.2.840.10008.1.2.1.99"
SYNTAXES = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2", DEFLATED)
BIG_ENDIAN = SYNTAXES[2]
CT = "1.2.840.10008.5.1.4.1.1.2"
# SOP instance, Modality, the sequence, study, series, and the module's own first element.
BEFORE_THE_MODULE = (0x00080018, 0x00080060, 0x00082218, 0x0020000D, 0x0020000E, 0x00280002)
EMPTY_ITEM = b"\xfe\xff\0\xe0" + bytes(4)
ENDS = b"\xfe\xff\xdd\xe0" + bytes(4)


def image(syntax: str, undefined: bool) -> bytes:
    inner = Dataset()
    inner.CodeValue = "T-1"
    inner.is_undefined_length_sequence_item = undefined
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID, ds.Modality = CT, "1.2.3", "CT"
    ds.AnatomicRegionSequence = Sequence([inner])
    ds["AnatomicRegionSequence"].is_undefined_length = undefined
    ds.StudyInstanceUID, ds.SeriesInstanceUID = "1.2.4", "1.2.5"
    ds.SamplesPerPixel, ds.PhotometricInterpretation, ds.Rows, ds.Columns = 1, "MONOCHROME2", 2, 2
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 0
    ds.add_new(0x7FE00010, "OW", bytes(8))
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID, ds.file_meta.MediaStorageSOPClassUID = syntax, CT
    ds.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    file = io.BytesIO()
    pydicom.dcmwrite(file, ds, enforce_file_format=True)
    return file.getvalue()


def judged(data: bytes, tags: list[int] | None) -> Reason | None:
    """What is wrong before the pixel data; ``no_pixels`` for a header that is whole and has none."""
    try:
        parsed = parse_dicom(io.BytesIO(data), tags=tags, max_inflated=1 << 20, size=len(data))
    except SampleError as error:
        return error.reason
    return None if parsed.pixels else parsed.problem or Reason.NO_PIXELS


@pytest.mark.parametrize("tags", [None, [0x00080016, 0x00280010]], ids=["all", "some"])
@pytest.mark.parametrize("undefined", [True, False])
@pytest.mark.parametrize("syntax", SYNTAXES)
def test_a_file_cut_before_its_pixel_data_is_never_one_without_pixels(
    syntax: str, undefined: bool, tags: list[int] | None
) -> None:
    data = image(syntax, undefined)
    assert judged(data, tags) is None
    cuts = {end: judged(data[:end], tags) for end in range(1, len(data))}
    # Between two elements a cut leaves no trace, before the Image Pixel module and behind it.
    silent = [end for end, reason in cuts.items() if reason is Reason.NO_PIXELS]
    order = ">HH" if syntax == BIG_ENDIAN else "<HH"
    begins = [struct.pack(order, tag >> 16, tag & 0xFFFF) for tag in (*BEFORE_THE_MODULE, 0x7FE00010)]
    assert all(data[end : end + 4] in begins for end in silent)
    assert len(silent) <= (0 if syntax == DEFLATED else len(BEFORE_THE_MODULE) + 1)
    known = {None, Reason.NOT_DICOM, Reason.TRUNCATED, Reason.NO_PIXELS}
    # The first bytes of a cut file meta element are no deflate stream.
    assert set(cuts.values()) <= known | ({Reason.CORRUPT} if syntax == DEFLATED else set())
    assert all(reason is Reason.NOT_DICOM for end, reason in cuts.items() if end <= 132)


def test_zeros_in_place_of_elements_are_damage_that_ends_the_reading() -> None:
    data = image(SYNTAXES[1], False)
    for end in (data.index(b"\x28\0\x10\0"), data.index(b"\x08\0\x16\0")):
        assert judged(data[:end] + bytes(1 << 20), None) is Reason.CORRUPT
        assert judged(data[:end] + bytes(1 << 20), [0x00280010]) is Reason.CORRUPT


def test_a_few_tags_out_of_order_are_read_over_and_many_are_not() -> None:
    head = meta() + explicit(0x00080016, "UI", CT)
    pixels = explicit(0x7FE00010, "OW", bytes(8))
    assert judged(head + explicit(0x00080060, "CS", "CT") * MOST_DISORDER + pixels, None) is None
    assert judged(head + explicit(0x00080060, "CS", "CT") * (MOST_DISORDER + 2) + pixels, None) is Reason.CORRUPT
    assert Outline().follow(0x00000000) is Reason.CORRUPT


def test_work_on_one_source_is_bounded() -> None:
    source = BoundedSource(io.BytesIO(bytes(8)), 8)
    source.work = MOST_WORK
    with pytest.raises(TooMuchWork):
        source.seek(0)
    assert source.exhausted


@pytest.mark.parametrize("tags", [None, [0x00081140]])
def test_sequences_of_countless_items_are_over_budget(tags: list[int] | None) -> None:
    items = EMPTY_ITEM * 400_000
    pixels = explicit(0x7FE00010, "OW", bytes(8))
    assert judged(meta() + explicit(0x00081140, "SQ", items) + pixels, tags) is Reason.OVER_BUDGET
    inner = b"\xfe\xff\0\xe0\xff\xff\xff\xff" + explicit(0x00081140, "SQ", items) + b"\xfe\xff\x0d\xe0" + bytes(4)
    data = meta() + explicit(0x00081140, "SQ", inner + ENDS, UNDEFINED) + pixels
    assert judged(data, tags) is Reason.OVER_BUDGET


def test_a_source_gives_the_bytes_of_its_file() -> None:
    data = struct.pack("<50000I", *range(50_000))
    source = BoundedSource(io.BytesIO(data), len(data))
    for at, count in ((0, 8), (65_530, 12), (65_534, 4), (150_000, 100_000), (3, 9), (199_990, 50)):
        source.seek(at)
        assert source.read(count) == data[at : at + count]
    assert zlib.crc32(data) == (source.seek(0), zlib.crc32(source.read()))[1]
