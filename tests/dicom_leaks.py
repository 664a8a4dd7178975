"""Finds what :mod:`tests.dicom_planted` planted in every byte below a folder, however it is wrapped."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.dicom_planted import BIRTH_DATE, DATE, STEM, TIME, UID_STEM, Planted

_DEPTH = 5
_HASH_PREFIX = 8


@dataclass(frozen=True)
class Leak:
    """Something planted that came through.

    Attributes:
        place: file, and within it member, column or chunk.
        what: the marker and where it was planted, an identifier's stem, a date, or what a digest is of.
        form: how it is written there.
    """

    place: str
    what: str
    form: str


def find_markers(folder: Path, planted: Planted) -> list[Leak]:
    """All leaks below ``folder``: in names and bytes, raw, UTF-16, hex and base64, as unkeyed hashes; in members of
    archives, values of parquet and arrow columns, compressed chunks of PNG; one of each kind per place."""
    needles = _needles(planted)
    found: dict[Leak, None] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        found.update(
            dict.fromkeys(_search(f"name of {name}", name.encode("utf-8", "surrogateescape"), needles, planted))
        )
        if path.is_symlink():
            target = str(path.readlink()).encode("utf-8", "surrogateescape")
            found.update(dict.fromkeys(_search(f"target of {name}", target, needles, planted)))
        if path.is_file():
            for place, data in _unwrapped(name, path.read_bytes(), _DEPTH):
                found.update(dict.fromkeys(_search(place, data, needles, planted)))
    return list(found)


@dataclass(frozen=True)
class _Needle:
    what: str
    form: str
    data: bytes
    any_case: bool


def _needles(planted: Planted) -> list[_Needle]:
    plain = {STEM: "text", UID_STEM: "UID", TIME: "time", "07:42:18": "time"}
    for date in (DATE, BIRTH_DATE):
        year, month, day = date[:4], date[4:6], date[6:]
        plain |= {date: "date", f"{year}-{month}-{day}": "date", f"{year}.{month}.{day}": "date"}
        plain |= {f"{year}/{month}/{day}": "date", f"{day}.{month}.{year}": "date", f"{month}/{day}/{year}": "date"}
    needles = []
    for text, what in plain.items():
        raw = text.encode()
        needles += [
            _Needle(f"{what} {text}", "raw", raw.lower(), True),
            _Needle(f"{what} {text}", "utf-16-le", text.lower().encode("utf-16-le"), True),
            _Needle(f"{what} {text}", "utf-16-be", text.lower().encode("utf-16-be"), True),
            _Needle(f"{what} {text}", "hex", raw.hex().encode(), True),
            *(_Needle(f"{what} {text}", "base64", part, False) for part in _base64_cores(raw)),
        ]
    hashed = {f"identifier {text}": text.encode() for text in planted.identifiers}
    hashed |= {f"file {path.name}": path.read_bytes() for path in (*planted.pictures, *planted.others)}
    for what, data in hashed.items():
        for name, digest in _digests(data):
            part = digest[:_HASH_PREFIX]
            needles += [
                _Needle(what, f"{name} in hex", part.hex().encode(), True),
                _Needle(what, f"{name} in bytes", part, False),
            ]
    return needles


def _base64_cores(raw: bytes) -> list[bytes]:
    """The characters that ``raw`` becomes at each of the three alignments, whatever stands around it."""
    cores = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw + b"\0" * (-(offset + len(raw)) % 3))
        cores.append(encoded[-(-8 * offset // 6) : 8 * (offset + len(raw)) // 6])
    return cores


def _digests(data: bytes) -> Iterator[tuple[str, bytes]]:
    for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2s"):
        yield name, hashlib.new(name, data).digest()
    for size in (8, 16, 20, 32, 64):
        yield f"blake2b/{size}", hashlib.blake2b(data, digest_size=size).digest()


_MARKER = re.compile(rb"zzplant\d{7}")


def _search(place: str, data: bytes, needles: list[_Needle], planted: Planted) -> Iterator[Leak]:
    lower = data.lower()
    for needle in needles:
        if needle.data not in (lower if needle.any_case else data):
            continue
        if needle.what.startswith("text ") and needle.form == "raw":
            for marker in sorted(set(_MARKER.findall(lower))) or [needle.data]:
                word = marker.decode().upper()
                yield Leak(place, f"{word} ({planted.words.get(word, 'cut short')})", "raw")
        else:
            yield Leak(place, needle.what, needle.form)


def _unwrapped(place: str, data: bytes, depth: int) -> Iterator[tuple[str, bytes]]:
    """The bytes, and those of everything packed inside of them."""
    yield place, data
    if depth == 0:
        return
    for is_one, unpack in _WRAPPINGS:
        if is_one(data):
            for part, inner in unpack(data):
                yield from _unwrapped(f"{place} > {part}", inner, depth - 1)


def _tar(data: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            described = [member.name, member.linkname, member.uname, member.gname, *member.pax_headers.values()]
            yield f"{member.name} (header)", "\n".join(described).encode("utf-8", "surrogateescape")
            file = tar.extractfile(member) if member.isfile() else None
            if file is not None:
                yield member.name, file.read()


def _zip(data: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


def _zstd(data: bytes) -> Iterator[tuple[str, bytes]]:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        yield "zstd", stream.read()


def _png(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The inflated parts of zTXt, iTXt and iCCP (PNG 11.3.2.3, 11.3.3), which hide text from a plain search."""
    place = 8
    while place + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, place)
        body = data[place + 8 : place + 8 + size]
        if kind in (b"zTXt", b"iTXt", b"iCCP"):
            for start in (match.start() for match in re.finditer(b"\x78", body)):
                try:
                    yield f"{kind.decode()} chunk", zlib.decompressobj().decompress(body[start:])
                except zlib.error:
                    continue
        place += 12 + size


def _parquet(data: bytes) -> Iterator[tuple[str, bytes]]:
    file = pq.ParquetFile(pa.BufferReader(data))
    yield from _table(file.read())


def _arrow(data: bytes) -> Iterator[tuple[str, bytes]]:
    with pa.ipc.open_file(pa.BufferReader(data)) as file:
        yield from _table(file.read_all())


def _table(table: pa.Table) -> Iterator[tuple[str, bytes]]:
    for number, name in enumerate(table.column_names):
        yield f"column {name}", b"\n".join(_values(table.column(number).to_pylist()))
        yield f"metadata of {name}", b"\n".join(_values(table.schema.field(number).metadata))
    yield "metadata", b"\n".join(_values([table.column_names, table.schema.metadata]))


def _values(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        yield from _values([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values(part)
    elif value is not None:
        yield value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


_Unpack = Callable[[bytes], Iterator[tuple[str, bytes]]]

_WRAPPINGS: tuple[tuple[Callable[[bytes], bool], _Unpack], ...] = (
    (lambda data: data[257:262] == b"ustar", _tar),
    (lambda data: data[:4] == b"PK\x03\x04", _zip),
    (lambda data: data[:2] == b"\x1f\x8b", lambda data: iter([("gzip", gzip.decompress(data))])),
    (lambda data: data[:3] == b"BZh", lambda data: iter([("bzip2", bz2.decompress(data))])),
    (lambda data: data[:6] == b"\xfd7zXZ\0", lambda data: iter([("xz", lzma.decompress(data))])),
    (lambda data: data[:4] == b"\x28\xb5\x2f\xfd", _zstd),
    (lambda data: data[:4] == b"PAR1", _parquet),
    (lambda data: data[:6] == b"ARROW1", _arrow),
    (lambda data: data[:8] == b"\x89PNG\r\n\x1a\n", _png),
)
