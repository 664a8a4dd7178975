"""Lists a source of DICOM files: its items, what its series are like, and what everything else is."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shardforge.dicom.slices import SeriesFinding
from shardforge.errors import UsageError
from shardforge.shards.catalogue import SKIPS, Reason
from shardforge.sources.dicom.columns import COLUMN_TYPES
from shardforge.sources.dicom.header import Header
from shardforge.sources.dicom.options import DicomSourceOptions, Unit
from shardforge.sources.dicom.pixel_digest import pixel_digest
from shardforge.sources.dicom.tree import DicomTree, read_tree
from shardforge.sources.dicom.units import make_units
from shardforge.sources.dicom.zips import Archives
from shardforge.sources.item import Item, Scan, UnknownFile
from shardforge.sources.names import sort_items, source_name

_SECONDS = 2.0
"""Between two reports of progress."""
_LAYOUTS: Mapping[Unit, str] = {
    "slice": "slices",
    "frame": "frames",
    "stack": "stacks of slices",
    "volume": "volumes",
}


@dataclass(slots=True)
class DicomScan(Scan):
    """The raw data of a build from DICOM files.

    Attributes:
        headers: of every file that an item's ``image`` field names, by its path.
        findings: one for every group of slices.
        segmentations: segmentation objects with pixels; they are fields of the samples they were made on, if any.
    """

    headers: Mapping[str, Header] = field(default_factory=dict)
    findings: tuple[SeriesFinding, ...] = ()
    segmentations: tuple[Header, ...] = ()


def scan_dicom(root: Path, options: DicomSourceOptions, tell: Callable[[str], None]) -> DicomScan:
    """Lists the items below ``root``: by unit, sorted by source and frame, with the columns of
    :data:`~shardforge.sources.dicom.columns.COLUMN_TYPES`, raw.

    Every file of the tree is in an item, a segmentation, or unknown.

    Args:
        tell: is told of progress, in words, every few seconds.

    Raises:
        UsageError: the root is no folder, or holds no DICOM file.
        StorageError: a folder cannot be listed.
        ShardforgeError: a process that reads headers cannot be started.
    """
    if not root.is_dir():
        raise UsageError("there is no such folder", where=source_name(str(root)))
    if options.unit == "stack" and options.neighbours < 1:
        raise UsageError("a stack needs at least one neighbour on each side", where="neighbours")
    root = root.resolve()
    tree = read_tree(root, options, _Progress(tell))
    if not tree.headers:
        raise UsageError(
            f"no DICOM file found: {_describe(tree.unknown)}",
            where=source_name(str(root)),
            todo="Is this the folder?",
        )
    digests: dict[str, bytes | None] = {}
    with Archives(root) as archives:

        def digest(header: Header) -> bytes | None:
            path = header.file.path
            if path not in digests:
                digests[path] = pixel_digest(archives, header, options.limits.source_bytes)
            return digests[path]

        units = make_units(tree.headers, options, digest)
    sort_items(units.items)
    whole = options.unit in ("stack", "volume")
    segmentations = tuple(one for one in tree.headers if one.problem is None and one.kind == "segmentation")
    unknown = (UnknownFile(source_name(thing.path), thing.why) for thing in tree.unknown)
    return DicomScan(
        layout=f"DICOM tree, {_LAYOUTS[options.unit]}",
        items=units.items,
        unknown=sorted(unknown, key=lambda thing: thing.path),
        columns={name: kind for name, kind in COLUMN_TYPES.items() if whole or name != "dicom_frames"},
        splits_declared=False,
        notes=list(_notes(tree, units.items, units.findings, segmentations)),
        headers={header.file.path: header for header in tree.headers},
        findings=units.findings,
        segmentations=segmentations,
    )


class _Progress:
    """Tells how far the header pass is, not too often."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next = time.monotonic() + _SECONDS

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS
            self._tell(f"headers: {done:,} of {total:,} files")


def _notes(
    tree: DicomTree, items: Sequence[Item], findings: Sequence[SeriesFinding], segmentations: Sequence[Header]
) -> Iterable[str]:
    images = [header for header in tree.headers if header.problem is None and header.kind != "segmentation"]
    yield ", ".join(
        (
            _count(len(images), "image file"),
            _count(len({one.patient_key for one in images}), "patient"),
            _count(len({one.study_key for one in images}), "study", "studies"),
            _count(len({one.series_key for one in images}), "series", "series"),
            _count(len(findings), "group of slices", "groups of slices"),
        )
    )
    nameless = sum(not one.patient for one in images)
    if nameless:
        yield f"{_count(nameless, 'file')} without PatientID: grouped by study"
    words = Counter(word for finding in findings for word in finding.words)
    if words:
        yield "groups of slices: " + ", ".join(f"{count:,} × {word}" for word, count in sorted(words.items()))
    skipped = Counter(one.kind if one.problem is Reason.NOT_A_PICTURE else "no pixels" for one in tree.headers
                      if one.problem in SKIPS)  # fmt: skip
    if skipped:
        told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(skipped.items()))
        yield f"no images: {_count(skipped.total(), 'file')} ({told})"
    if segmentations:
        yield f"{_count(len(segmentations), 'segmentation object')}: no samples of their own"
    problems = Counter(item.problem for item in items if item.problem is not None and item.problem not in SKIPS)
    if problems:
        yield "problems: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(problems.items()))
    if tree.archives:
        yield f"{_count(tree.archives, 'zip archive')} read in place"
    if tree.inner_links:
        yield f"{tree.inner_links:,} symbolic links lead to other places of the source: what is there is listed twice"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _describe(unknown: Sequence[UnknownFile]) -> str:
    if not unknown:
        return "it holds no files at all"
    common = Counter(thing.why for thing in unknown).most_common(3)
    return f"it holds {_count(len(unknown), 'file')} ({', '.join(f'{count:,} × {why}' for why, count in common)})"
