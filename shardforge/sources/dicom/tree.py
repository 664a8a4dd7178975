"""Which files of a tree are DICOM, by their content, whatever they are called; those in zip archives as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from shardforge.errors import SampleError
from shardforge.shards.catalogue import Reason
from shardforge.sources.dicom.foreign import ZIP
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.header_pass import read_headers
from shardforge.sources.dicom.options import DicomSourceOptions
from shardforge.sources.dicom.read_header import HeaderSettings
from shardforge.sources.dicom.zips import HIDDEN, SEPARATOR, Archives, is_member
from shardforge.sources.item import SourceFile, UnknownFile
from shardforge.sources.recognise import is_hidden
from shardforge.sources.walk import walk

_EXTENSIONS = (".dcm", ".dicom", ".dic", ".ima")


@dataclass(slots=True)
class DicomTree:
    """What a source folder holds.

    Attributes:
        headers: of DICOM files, and of files that are called so or cannot be read; by path.
        unknown: everything else, by raw path.
        inner_links: links followed to another place of the source.
        archives: zip archives with DICOM files in them.
    """

    headers: list[Header] = field(default_factory=list)
    unknown: list[UnknownFile] = field(default_factory=list)
    inner_links: int = 0
    archives: int = 0


def read_tree(
    root: Path, options: DicomSourceOptions, progress: Callable[[int, int], None] | None = None
) -> DicomTree:
    """Reads the headers of all files below ``root`` and in its zip archives.

    A DICOMDIR is a file like others: it is never followed, since the tree is listed anyway.

    Args:
        progress: called with the number of files read and to read.

    Raises:
        StorageError: a folder cannot be listed.
        ShardforgeError: a process that reads headers cannot be started.
    """
    tree = DicomTree()
    files: list[SourceFile] = []
    for folder in walk(str(root), options.follow_symlinks):
        tree.unknown += folder.blocked
        tree.inner_links += folder.inner_links
        if folder.hidden:
            tree.unknown += (UnknownFile(file.path, "in a hidden folder") for file in folder.files)
        else:
            files += folder.files
    settings = HeaderSettings(options.limits.frames, options.limits.source_bytes, options.dose)
    headers = read_headers(root, files, settings, options.workers, progress)
    zips = [header.file for header in headers if _is_foreign(header) and header.detail == ZIP]
    members, listed = _list_archives(root, zips, options, tree)
    found = read_headers(root, members, settings, options.workers, progress) + listed
    _sort_out([header for header in headers if header.detail != ZIP or not _is_foreign(header)], tree)
    _sort_out_members(found, zips, tree)
    tree.headers.sort(key=lambda header: header.file.path)
    return tree


def _is_foreign(header: Header) -> bool:
    return header.problem is Reason.NOT_DICOM


def _sort_out(headers: list[Header], tree: DicomTree) -> None:
    """DICOM files, and such as claim to be, are headers; all others unknown."""
    for header in headers:
        name = header.file.path.rpartition("/")[2]
        claims = name.lower().endswith(_EXTENSIONS) and not is_hidden(name)
        if header.problem not in (Reason.NOT_DICOM, Reason.EMPTY) or claims or header.detail == "dicom picture":
            tree.headers.append(header)
        else:
            tree.unknown.append(UnknownFile(header.file.path, "hidden" if is_hidden(name) else _why(header)))


def _why(header: Header) -> str:
    return header.detail or "empty"


def _list_archives(
    root: Path, zips: list[SourceFile], options: DicomSourceOptions, tree: DicomTree
) -> tuple[list[SourceFile], list[Header]]:
    members: list[SourceFile] = []
    refused: list[Header] = []
    with Archives(root) as archives:
        for file in zips:
            try:
                listing = archives.list(file.path, file.mtime_ns, options.zips)
            except SampleError as error:
                refused.append(Header(file, problem=error.reason, detail=error.detail))
                continue
            members += listing.members
            refused += (Header(member, problem=reason, detail=why) for member, reason, why in listing.refused)
            tree.unknown += (UnknownFile(path, why) for path, why in listing.unknown)
    return members, refused


def _sort_out_members(headers: list[Header], zips: list[SourceFile], tree: DicomTree) -> None:
    """An archive without any DICOM file is one unknown file, not many; but members that might be DICOM files and are
    not opened count. Hidden ones do not: documents that are archives have some."""
    inside: dict[str, list[Header]] = {file.path: [] for file in zips}
    for header in headers:
        inside[header.file.path.partition(SEPARATOR)[0]].append(header)
    for path, members in inside.items():
        nested = [header for header in members if _is_foreign(header) and header.detail == ZIP]
        tree.unknown += (UnknownFile(header.file.path, "archive inside an archive (not opened)") for header in nested)
        if any(not is_member(header.file.path) or header.problem is not Reason.NOT_DICOM for header in members):
            tree.archives += 1
            _sort_out([header for header in members if header not in nested], tree)
        else:
            inner = f"{path}{SEPARATOR}"
            tree.unknown = [one for one in tree.unknown if one.why != HIDDEN or not one.path.startswith(inner)]
            closed = any(one.path.startswith(inner) for one in tree.unknown)
            among = " among the members opened" if closed else ""
            tree.unknown.append(UnknownFile(path, f"zip archive without DICOM files{among}"))
