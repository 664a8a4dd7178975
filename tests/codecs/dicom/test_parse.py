"""Finding a file's elements and the place of its pixel data, whatever its start looks like."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from shardforge.codecs.dicom.parse import Parsed, parse_dicom
from shardforge.errors import SampleError
from shardforge.shards.catalogue import Flag, Reason
from tests.codecs.dicom.dicom_files import explicit, meta

ROWS, SOP_CLASS = 0x00280010, 0x00080016
LIMIT = 1 << 24


META = meta()
CT = explicit(SOP_CLASS, "UI", b"1.2.840.10008.5.1.4.1.1.2\0")
IMAGE = CT + explicit(ROWS, "US", b"\2\0") + explicit(0x00280011, "US", b"\2\0")


def parse(data: bytes, tags: list[int] | None = None, limit: int = LIMIT) -> Parsed:
    return parse_dicom(io.BytesIO(data), tags=tags, max_inflated=limit, size=len(data))


def reason(data: bytes, tags: list[int] | None = None) -> Reason:
    with pytest.raises(SampleError) as caught:
        parse(data, tags)
    return caught.value.reason


class Greedy(io.BytesIO):
    """Refuses what a buffered file would allocate for: more than there is."""

    def read(self, count: int | None = -1) -> bytes:
        assert count is not None
        assert count <= len(self.getvalue())
        return super().read(count)


def test_pixel_data_are_located_and_not_read() -> None:
    data = META + IMAGE + explicit(0x7FE00010, "OW", b"\1\2\3\4")
    parsed = parse(data)
    assert parsed.pixels is not None
    assert (parsed.pixels.start, parsed.pixels.length, parsed.pixels.vr) == (len(data) - 4, 4, "OW")
    assert parsed.dataset.Rows == 2
    assert parsed.flags == ()


def test_a_header_only_pass_reads_the_wanted_elements_alone() -> None:
    parsed = parse(META + IMAGE + explicit(0x7FE00010, "OW", bytes(100)), [ROWS])
    assert [int(tag) for tag in parsed.dataset.keys()] == [ROWS]  # noqa: SIM118
    assert parsed.pixels is not None


def test_a_header_longer_than_the_first_read_is_followed_to_its_end() -> None:
    data = META + IMAGE + explicit(0x00291010, "OB", bytes(200_000)) + explicit(0x7FE00010, "OW", bytes(8))
    for tags in (None, [ROWS]):
        parsed = parse(data, tags)
        assert parsed.dataset.Rows == 2
        assert parsed.pixels is not None
        assert parsed.pixels.start == len(data) - 8


@pytest.mark.parametrize("tags", [None, [ROWS]])
def test_long_file_meta_information_is_read_through(tags: list[int] | None) -> None:
    private = explicit(0x00020102, "OB", bytes(50_000))
    parsed = parse(META + private + IMAGE + explicit(0x7FE00010, "OW", bytes(8)), tags)
    assert parsed.dataset.Rows == 2


def test_a_length_beyond_the_file_is_never_asked_for() -> None:
    data = META + IMAGE + explicit(0x00291010, "OB", bytes(40_000), length=0xFFFFFFF0)
    for tags in (None, [ROWS], [ROWS, 0x00291010]):
        parsed = parse_dicom(Greedy(data), tags=tags, max_inflated=LIMIT, size=len(data))
        assert parsed.problem is Reason.TRUNCATED
        assert parsed.dataset.Rows == 2


def test_elements_before_the_damage_are_kept() -> None:
    parsed = parse(META + IMAGE + explicit(0x00291010, "SQ", b"\xfe\xff\0\xe0", length=0xFFFFFFFF))
    assert parsed.problem is Reason.TRUNCATED
    assert parsed.dataset.Rows == 2


def test_bottomless_nesting_ends() -> None:
    level = explicit(0x00081140, "SQ", b"", length=0xFFFFFFFF) + b"\xfe\xff\0\xe0\xff\xff\xff\xff"
    parsed = parse(META + IMAGE + level * 5000)
    assert parsed.problem is not None


@pytest.mark.parametrize("head", [b"", b"MZ\x90"])
def test_what_a_preamble_holds_is_flagged(head: bytes) -> None:
    parsed = parse(head.ljust(128, b"\0") + META[128:] + IMAGE)
    assert parsed.flags == ((Flag.PREAMBLE_NOT_EMPTY,) if head else ())


def test_a_missing_transfer_syntax_is_found_from_the_elements() -> None:
    parsed = parse(IMAGE)
    assert (parsed.transfer_syntax, parsed.flags) == ("1.2.840.10008.1.2.1", (Flag.TS_INFERRED,))
    implicit = struct.pack("<HHI", 8, 0x16, 4) + b"1.2\0" + struct.pack("<HHIH", 0x28, 0x10, 2, 9)
    assert parse(implicit).transfer_syntax == "1.2.840.10008.1.2"
    assert parse(implicit).dataset.Rows == 9
    big = struct.pack(">HH2sH", 8, 0x16, b"UI", 4) + b"1.2\0" + struct.pack(">HH2sHH", 0x28, 0x10, b"US", 2, 9)
    assert parse(big).transfer_syntax == "1.2.840.10008.1.2.2"
    assert parse(big).dataset.Rows == 9


@pytest.mark.parametrize("tags", [None, [ROWS]])
def test_an_encapsulated_codec_is_found_from_its_first_fragment(tags: list[int] | None) -> None:
    start = b"\xfe\xff\0\xe0" + struct.pack("<I", 4) + bytes(4) + b"\xfe\xff\0\xe0" + struct.pack("<I", 16)
    stream = b"\xff\xd8\xff\xf7\0\x0b\x08\0\2\0\2\1\1\x11\0".ljust(16, b"\0")
    parsed = parse(IMAGE + explicit(0x7FE00010, "OB", start + stream, length=0xFFFFFFFF), tags)
    assert parsed.transfer_syntax == "1.2.840.10008.1.2.4.81"


def test_what_is_no_dicom_file_is_told_apart() -> None:
    assert reason(b"") is Reason.EMPTY
    for data in (
        b"plain text" * 9,
        b"\xff\xd8\xff\xe0" * 50,
        b"\x1f\x8b" * 99,
        META[:132],
        b"\x08\0",
        b"\x08",
    ):
        assert reason(data) is Reason.NOT_DICOM
        assert reason(data, [ROWS]) is Reason.NOT_DICOM


def _deflated(dataset: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return meta("1.2.840.10008.1.2.1.99") + packer.compress(dataset) + packer.flush()


def test_a_deflated_dataset_is_inflated_within_its_limit() -> None:
    data = _deflated(IMAGE + explicit(0x7FE00010, "OW", bytes(8_000_000)))
    parsed = parse(data, limit=9_000_000)
    assert parsed.inflated is not None
    assert parsed.pixels is not None
    assert len(parsed.inflated) == parsed.pixels.start + 8_000_000
    with pytest.raises(SampleError) as caught:
        parse(data, limit=7_000_000)
    assert caught.value.reason is Reason.OVER_BUDGET
    # The header stands in the first few bytes.
    assert parse(data, [ROWS], limit=7_000_000).dataset.Rows == 2


def test_a_long_header_in_a_deflated_dataset_is_read_whole() -> None:
    data = _deflated(IMAGE + explicit(0x00291010, "OB", bytes(500_000)) + explicit(0x7FE00010, "OW", bytes(8)))
    parsed = parse(data, [ROWS])
    assert parsed.pixels is not None
    assert parsed.pixels.start > 500_000
    assert reason(_deflated(IMAGE)[:162] + b"\xff" * 50) is Reason.CORRUPT


def test_pydicom_says_nothing(corpus: Path) -> None:
    code = (
        "import sys; from shardforge.codecs.dicom.parse import parse_dicom; from pathlib import Path\n"
        "for path in map(Path, sys.argv[1:]):\n"
        "    parsed = parse_dicom(path.open('rb'), max_inflated=1 << 20, size=path.stat().st_size)\n"
        "    for tag in list(parsed.dataset.keys()):\n"
        "        try: parsed.dataset[tag].value\n"
        "        except Exception: pass\n"
    )
    names = ("broken/badVR.dcm", "broken/rtplan_truncated.dcm", "broken/bad_sequence.dcm", "charset/chrX1.dcm")
    paths = [str(corpus / "dicom" / name) for name in names]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
