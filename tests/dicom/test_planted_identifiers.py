"""The search for planted identifiers: it finds them in every wrapping, and nothing where there is none."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pydicom
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pydicom.datadict import DicomDictionary

from tests.dicom_leaks import find_markers
from tests.dicom_planted import DATE, ORDINARY, STEM, STRUCTURE, TIME, UID_STEM, Planted, plant_dicom

WORD = f"{STEM}0000001"
NOTHING = Planted(Path(), words={WORD: "a test"}, identifiers=("P-4711",))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant_dicom(tmp_path_factory.mktemp("planted") / "source")


def test_the_pictures_are_plain_ct_slices(planted: Planted) -> None:
    assert len(planted.pictures) == 3
    for number, path in enumerate(planted.pictures):
        ds = pydicom.dcmread(path)
        assert ds.Modality == "CT"
        assert list(ds.ImageType) == ["ORIGINAL", "PRIMARY", "AXIAL"]
        assert ds.ImagePositionPatient[2] == 2.5 * number
        assert ds.pixel_array.shape == (32, 32)
        assert "SecondaryCaptureDeviceID" not in ds
    assert "SecondaryCaptureDeviceID" in pydicom.dcmread(planted.others[0])
    assert "PixelData" not in pydicom.dcmread(planted.others[1])


def test_every_attribute_that_holds_text_holds_a_marker(planted: Planted) -> None:
    texts = {"AE", "CS", "LO", "LT", "PN", "SH", "ST", "UC", "UR", "UT", "SQ"}
    wanted = {
        tag: keyword for tag, (vr, _, _, _, keyword) in DicomDictionary.items() if vr in texts and tag >> 16 > 4
    }
    for path in planted.pictures:
        ds = pydicom.dcmread(path)
        data = path.read_bytes()
        missing = [keyword for tag, keyword in wanted.items() if tag not in ds]
        assert set(missing) <= STRUCTURE | ORDINARY
        for tag in wanted.keys() & ds.keys():
            if ds[tag].VR != "SQ" and ds[tag].keyword not in ("Modality", "ImageType", "PhotometricInterpretation"):
                assert STEM in str(ds[tag].value) or ds[tag].keyword == "SpecificCharacterSet", ds[tag].keyword
        assert data.count(STEM.encode()) > 4000


def test_markers_are_unique_and_stand_in_every_carrier(planted: Planted) -> None:
    wheres = " ".join(planted.words.values())
    for carrier in (
        "folder name", "file name", "text file", "preamble", "file meta", "private creator", "private text",
        "private bytes", "private item", "fourth level", "icon pixels", "OverlayComments", "OverlayData",
        "DataSetTrailingPadding", "item of RequestAttributesSequence",
    ):  # fmt: skip
        assert carrier in wheres
    data = planted.pictures[0].read_bytes()
    places = {
        data.find(word.encode()) for word, where in planted.words.items() if where.startswith(("preamble", "icon"))
    }
    assert len(places) > 3
    ds = pydicom.dcmread(planted.pictures[0])
    assert ds.preamble.startswith(STEM.encode())
    assert ds.file_meta.ImplementationVersionName.startswith(STEM)
    assert STEM.encode() in ds.file_meta.PrivateInformation


def test_the_source_itself_is_full_of_leaks(planted: Planted) -> None:
    found = find_markers(planted.folder, planted)
    picture = planted.pictures[0].relative_to(planted.folder).as_posix()
    whats = {leak.what for leak in found if leak.place == picture}
    assert len(whats) > 3000
    assert {f"UID {UID_STEM}", f"date {DATE}", f"time {TIME}"} <= whats
    assert any("(PatientName .dcm)" in what for what in whats)
    assert any(leak.place == f"name of {picture}" for leak in found)


def _parquet(text: str, compression: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"a": [["x", text * 20]] * 300}),
        sink,
        compression=compression,
        use_dictionary=False,
        write_statistics=False,
    )
    return sink.getvalue()


def _arrow(text: str) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": [text] * 300})
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _metadata(text: str) -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"note": text})], metadata={"who": text})
    pq.write_table(pa.table({"a": [1]}, schema=schema), sink)
    return sink.getvalue()


def _tar(content: str | bytes, mode: str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as tar:
        info = tarfile.TarInfo("000.txt")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return sink.getvalue()


def _zip(content: str | bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", content if isinstance(content, bytes) else content * 50)
    return sink.getvalue()


def _png(text: str, kind: str) -> bytes:
    info, sink = PngInfo(), io.BytesIO()
    if kind == "iTXt":
        info.add_itxt("Comment", text * 20, zip=True)
    else:
        info.add_text("Comment", text * 20, zip=kind == "zTXt")
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(sink, "png", pnginfo=info)
    return sink.getvalue()


def _jpeg(text: str) -> bytes:
    sink = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(sink, "jpeg", comment=text.encode())
    return sink.getvalue()


def _zstd(text: str) -> bytes:
    return pa.compress((text * 50).encode(), "zstd", asbytes=True)


CARRIERS: dict[str, Callable[[str], bytes]] = {
    "raw": lambda text: b"\x00\xff" + text.encode() + b"\xfe",
    "lower case": lambda text: text.lower().encode(),
    "utf-16-le": lambda text: f"x{text}".encode("utf-16-le"),
    "utf-16-be": lambda text: b"\0" + text.encode("utf-16-be"),
    "hex": lambda text: text.encode().hex().encode(),
    "HEX": lambda text: text.encode().hex().upper().encode(),
    "base64, first alignment": lambda text: base64.b64encode(text.encode() + b"?"),
    "base64, second": lambda text: base64.b64encode(b"?" + text.encode()),
    "base64, third": lambda text: base64.urlsafe_b64encode(b"\xff\xff" + text.encode()),
    "json": lambda text: json.dumps({"é": [text]}).encode(),
    "parquet, zstd": lambda text: _parquet(text, "zstd"),
    "parquet, gzip": lambda text: _parquet(text, "gzip"),
    "parquet metadata": _metadata,
    "arrow": _arrow,
    "tar": lambda text: _tar(text, "w"),
    "tar.gz": lambda text: _tar(text, "w:gz"),
    "zip": _zip,
    "gzip": lambda text: gzip.compress(text.encode() * 50),
    "bzip2": lambda text: bz2.compress(text.encode() * 50),
    "xz": lambda text: lzma.compress(text.encode() * 50),
    "zstd": _zstd,
    "png text": lambda text: _png(text, "tEXt"),
    "png compressed text": lambda text: _png(text, "zTXt"),
    "png international text": lambda text: _png(text, "iTXt"),
    "jpeg comment": _jpeg,
    "png in a zip in a tar": lambda text: _tar(_zip(_png(text, "zTXt")), "w"),
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("text", [WORD, f"{UID_STEM}0000007", DATE, TIME])
def test_what_is_planted_is_found_in_every_carrier(carrier: str, text: str, tmp_path: Path) -> None:
    data = CARRIERS[carrier](text)
    (tmp_path / "file").write_bytes(data)
    assert find_markers(tmp_path, NOTHING)


@pytest.mark.parametrize("carrier", ["parquet, zstd", "arrow", "gzip", "zstd", "zip", "png compressed text"])
def test_these_carriers_do_hide_it_from_a_plain_search(carrier: str) -> None:
    assert WORD.encode() not in CARRIERS[carrier](WORD)


def test_a_marker_in_a_name_or_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / f"x{WORD.lower()}.txt").touch()
    (tmp_path / "link").symlink_to(f"/nowhere/{WORD}")
    assert {leak.place.split()[0] for leak in find_markers(tmp_path, NOTHING)} == {"name", "target"}
    assert find_markers(tmp_path, NOTHING)[0].what == f"{WORD} (a test)"


def test_a_date_in_a_date_column_is_found(tmp_path: Path) -> None:
    day = date(int(DATE[:4]), int(DATE[4:6]), int(DATE[6:]))
    pq.write_table(pa.table({"when": [day]}), tmp_path / "a.parquet")
    assert [leak.what for leak in find_markers(tmp_path, NOTHING)] == [f"date {day.isoformat()}"]


@pytest.mark.parametrize(
    "digest",
    [
        hashlib.sha256(b"P-4711").hexdigest(),
        hashlib.sha256(b"P-4711").hexdigest()[:16].upper(),
        hashlib.md5(b"P-4711").digest(),
        hashlib.blake2b(b"P-4711", digest_size=8).hexdigest(),
    ],
)
def test_an_unkeyed_hash_of_an_identifier_is_a_leak(digest: str | bytes, tmp_path: Path) -> None:
    """Patient numbers are few: whoever has the hash finds the number by trying them all."""
    (tmp_path / "file").write_bytes(b"-" + (digest.encode() if isinstance(digest, str) else digest) + b"-")
    assert [leak.what for leak in find_markers(tmp_path, NOTHING)] == ["identifier P-4711"]


def test_the_digest_of_a_source_file_is_a_leak(planted: Planted, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(hashlib.sha256(planted.pictures[1].read_bytes()).hexdigest())
    (leak,) = find_markers(tmp_path, planted)
    assert leak.form == "sha256 in hex"


def test_nothing_is_found_where_nothing_is(planted: Planted, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(np.random.default_rng(1).bytes(2_000_000))
    (tmp_path / "hex").write_text(np.random.default_rng(2).bytes(200_000).hex())
    (tmp_path / "base64").write_bytes(base64.b64encode(np.random.default_rng(3).bytes(200_000)))
    for name in ("parquet, zstd", "arrow", "tar.gz", "zip", "png compressed text", "png text", "jpeg comment"):
        (tmp_path / name.replace(" ", "_")).write_bytes(CARRIERS[name]("harmless"))
    assert find_markers(tmp_path, planted) == []
