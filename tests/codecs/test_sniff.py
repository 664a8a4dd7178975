from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardforge.codecs.sniff import sniff


def test_every_file_of_the_corpus_is_named_by_its_first_512_bytes(corpus: Path) -> None:
    wrong = []
    for line in (corpus / "expected.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        if fact["kind"] != "image":
            continue
        head = (corpus / fact["path"]).read_bytes()[:512]
        expected = "tga" if fact["path"].endswith(".tga") else fact["expect"]["format"]
        if sniff(head) != expected:
            wrong.append((fact["path"], sniff(head)))
    assert wrong == []


def test_dicom_is_named(corpus: Path) -> None:
    for path in sorted((corpus / "dicom" / "ts").iterdir())[:5]:
        assert sniff(path.read_bytes()[:512]) == "dicom"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"P",
        b"BM" + b"\x20" * 60,
        b"Plain text that begins with a capital P.",
        b"PK\x03\x04" + b"\0" * 40,
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.7\n",
        b"\x7fELF" + b"\0" * 60,
        b"\0" * 512,
        b"version https://git-lfs.github.com/spec/v1\n",
        b"\0\0\0\x18ftypisom\0\0\2\0isomiso2mp41",
        b"\x93NUMPY\x01\0",
        b"RIFF\0\0\0\0WAVEfmt ",
    ],
)
def test_what_is_no_picture_has_no_name(data: bytes) -> None:
    assert sniff(data) is None


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"II*\0\x10\0\0\0CR\2\0", "raw"),
        (b"\0\0\0\x18ftypcrx \0\0\0\1crx isom", "raw"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avifmiaf", "avif"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "heif"),
        (b"\0\0\2\0\1\0\x20\x20", "cur"),
        (b"\xff\xd8", "jpeg"),
    ],
)
def test_relatives_are_told_apart(data: bytes, name: str) -> None:
    assert sniff(data) == name
