"""Zip archives of DICOM trees: members are listed and read in place, within bounds; nothing is ever unpacked.

A member's path is ``archive.zip//inner/name.dcm``: ``//`` never occurs in a plain relative path.
"""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.item import SourceFile

SEPARATOR = "//"
HIDDEN = "hidden"
"""Why a member is left alone whose name, or folder's name, begins with a dot, or that macOS has added."""
_ENCRYPTED = 0x1
_TAIL = 22 + 0xFFFF + 20
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, KeyError)
"""What reading a damaged or hostile archive raises."""


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """What an archive may hold.

    Attributes:
        members: files in one archive.
        directory: bytes of its directory, read before anything else is known.
        total: bytes of all its members, unpacked.
        ratio: unpacked over packed size of the archive. Deflate reaches 1032; more means that members overlap.
    """

    members: int = 500_000
    directory: int = 64 * 2**20
    total: int = 2**40
    ratio: int = 1100


@dataclass(slots=True)
class ZipListing:
    """An archive's members.

    Attributes:
        members: what may be read, in the archive's order.
        refused: members that cannot be, with the reason and words for the log.
        unknown: members that are left alone, and why.
    """

    members: list[SourceFile] = field(default_factory=list)
    refused: list[tuple[SourceFile, Reason, str]] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)


def is_member(path: str) -> bool:
    """Whether a source path names a member of an archive."""
    return SEPARATOR in path


class Archives:
    """Opens files below a root, members of archives included; keeps the archives last used open.

    Args:
        root: the source folder.
        keep: archives open at a time.
    """

    def __init__(self, root: Path, keep: int = 4) -> None:
        self._root = root
        self._keep = keep
        self._open: OrderedDict[str, tuple[BinaryIO, zipfile.ZipFile]] = OrderedDict()

    def __enter__(self) -> Archives:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every archive."""
        while self._open:
            self._drop()

    def open(self, path: str) -> BinaryIO:
        """A seekable file: a plain one, or a member that is unpacked as it is read.

        Raises:
            SampleError: ``missing_file``, ``unreadable``, ``corrupt`` (archive), ``unsupported`` (encryption or
                method of compression).
        """
        outer, found, inner = path.partition(SEPARATOR)
        if not found:
            return self._plain(path)
        try:
            archive = self._archive(outer)
            info = archive.getinfo(inner)
            why = _why_refused(info)
            if why is not None:
                raise SampleError(Reason.UNSUPPORTED, why)
            return archive.open(info)  # type: ignore[return-value]
        except KeyError:
            raise SampleError(Reason.MISSING_FILE, "no such member in the archive") from None
        except DAMAGED as error:
            raise SampleError(Reason.CORRUPT, f"zip archive: {type(error).__name__}") from None

    def read(self, path: str, limit: int) -> bytes:
        """All bytes of a plain file or a member.

        Args:
            limit: the most bytes it may have.

        Raises:
            SampleError: as :meth:`open`, or ``over_budget``.
        """
        with self.open(path) as file:
            try:
                data = file.read(limit + 1)
            except DAMAGED as error:
                raise SampleError(Reason.CORRUPT, f"zip archive: {type(error).__name__}") from None
            except OSError as error:
                raise SampleError(Reason.UNREADABLE, str(error.strerror)) from None
        if len(data) > limit:
            raise SampleError(Reason.OVER_BUDGET, f"more than {limit} bytes")
        return data

    def list(self, path: str, mtime_ns: int, limits: ZipLimits) -> ZipListing:
        """The members of the archive at ``path``.

        Args:
            mtime_ns: of the archive; its members have the same.

        Raises:
            SampleError: ``over_budget``, ``corrupt``, ``unreadable``.
        """
        with self._plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            if _directory_size(file, size) > limits.directory:
                raise SampleError(Reason.OVER_BUDGET, f"the archive's directory has over {limits.directory} bytes")
        try:
            infos = self._archive(path).infolist()
        except DAMAGED as error:
            raise SampleError(Reason.CORRUPT, f"zip archive: {type(error).__name__}") from None
        total = sum(info.file_size for info in infos)
        if len(infos) > limits.members:
            raise SampleError(Reason.OVER_BUDGET, f"{len(infos)} members, {limits.members} allowed")
        if total > limits.total or total > limits.ratio * size:
            raise SampleError(Reason.OVER_BUDGET, f"{size} bytes unpack to {total}")
        return _listing(path, mtime_ns, infos)

    def _plain(self, path: str) -> BinaryIO:
        try:
            # Non-blocking: should a pipe have taken the file's place since it was listed, opening it must not hang.
            descriptor = os.open(self._root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise SampleError(Reason.MISSING_FILE) from None
        except OSError as error:
            raise SampleError(Reason.UNREADABLE, str(error.strerror)) from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise SampleError(Reason.UNREADABLE, "not a regular file")
        return os.fdopen(descriptor, "rb")

    def _archive(self, path: str) -> zipfile.ZipFile:
        if path in self._open:
            self._open.move_to_end(path)
            return self._open[path][1]
        file = self._plain(path)
        try:
            archive = zipfile.ZipFile(file)
        except BaseException:
            file.close()
            raise
        self._open[path] = file, archive
        if len(self._open) > self._keep:
            self._drop()
        return archive

    def _drop(self) -> None:
        _, (file, archive) = self._open.popitem(last=False)
        archive.close()
        file.close()


def _listing(path: str, mtime_ns: int, infos: list[zipfile.ZipInfo]) -> ZipListing:
    listing = ZipListing()
    seen: set[str] = set()
    for info in infos:
        if info.is_dir():
            continue
        name = f"{path}{SEPARATOR}{info.filename}"
        why_not = next(_unsafe(info.filename, info.filename in seen), None)
        seen.add(info.filename)
        if why_not is not None:
            listing.unknown.append((name, why_not))
            continue
        member = SourceFile(name, info.file_size, mtime_ns)
        refused = _why_refused(info)
        if refused is not None:
            listing.refused.append((member, Reason.UNSUPPORTED, refused))
        else:
            listing.members.append(member)
    return listing


def _unsafe(name: str, seen: bool) -> Iterator[str]:
    parts = name.replace("\\", "/").split("/")
    if ".." in parts or not parts[0] or parts[0].endswith(":"):
        yield "unsafe name in an archive (not opened)"
    if seen:
        yield "another member of the archive has the same name"
    if any(part.startswith(".") or part == "__MACOSX" for part in parts):
        yield HIDDEN


def _why_refused(info: zipfile.ZipInfo) -> str | None:
    if info.flag_bits & _ENCRYPTED:
        return "encrypted"
    # Of the other methods some have no bound to how much a byte unpacks to.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"compressed by method {info.compress_type}"
    return None


def _directory_size(file: BinaryIO, size: int) -> int:
    """As the end of the archive states it (APPNOTE 4.3.14 to 4.3.16): what opening it will read into memory."""
    file.seek(max(0, size - _TAIL))
    tail = file.read(_TAIL)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or at + 22 > len(tail):
        raise SampleError(Reason.CORRUPT, "zip archive without its end record")
    stated = int.from_bytes(tail[at + 12 : at + 16], "little")
    locator = tail[max(0, at - 20) : at]
    if locator[:4] == b"PK\x06\x07":
        file.seek(min(int.from_bytes(locator[8:16], "little"), size))
        record = file.read(56)
        if record[:4] == b"PK\x06\x06":
            stated = max(stated if stated != 0xFFFFFFFF else 0, int.from_bytes(record[40:48], "little"))
    return stated
