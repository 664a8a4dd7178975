"""``index``: tars made elsewhere get a manifest, parquet rows and an index, and are not touched."""

from __future__ import annotations

import errno
import hashlib
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shardforge.codecs.limits import Limits
from shardforge.errors import StorageError, UsageError
from shardforge.indexing.pixel_counts import PixelCounts
from shardforge.indexing.place import WORK, clear_earlier, earlier_index, is_current, link_tars, refuse_clashes
from shardforge.indexing.report import IndexReport, report_of
from shardforge.indexing.rows import keys, shard_rows
from shardforge.indexing.shape import Shape, find_shape
from shardforge.indexing.survey import Survey, read_survey, survey
from shardforge.indexing.tars import FoundTar, find_tars
from shardforge.machine import inspect_machine
from shardforge.shards import index as split_index
from shardforge.shards import layout, metadata
from shardforge.shards.catalogue import Status
from shardforge.shards.manifest import FieldInfo, ForeignInfo, InputInfo, Manifest, ShardInfo, SplitInfo
from shardforge.shards.sidecars import check_kinds, kinds_there, write_sidecars
from shardforge.shards.statistics import PixelStatistics
from shardforge.shards.uniqueness import KeyHashes, key_hash
from shardforge.storage import FolderLock, explain, sync_file, write_durably
from shardforge.text import plain

_LIMITS = Limits()
_MOST_AT_A_TIME = 8
"""Tars that are read at the same time; what is not hashing is done by one thread at a time."""


def index(
    path: str | Path,
    out: str | Path | None = None,
    *,
    split: Mapping[str, str] | None = None,
    image: str | None = None,
    label: str = "auto",
    classes: Sequence[str] | None = None,
    stats: bool = False,
    sidecars: Sequence[str] = (),
    quiet: bool = False,
) -> IndexReport:
    """Makes a dataset of WebDataset tars from anywhere, without touching them.

    Every tar is read once, from front to back. A sample's members may lie anywhere in its tar. An interrupted call
    goes on where it was when it is made again.

    Args:
        path: folder of the tars; folders below it count.
        out: where manifest, parquet rows, index and links to the tars are written; default: beside the tars.
        split: split → pattern of file names; default: by the words train, val, test and the like in a tar's path.
        image: the field that holds the image (``jpg``; ``jpeg`` counts as that); default: the most frequent picture.
        label: ``cls``, ``json:NAME``, ``none``, or ``auto``: ``cls`` where there is any.
        classes: names of the classes by id.
        stats: decode every image, for pixel statistics; those that cannot be decoded are failed.
        sidecars: ``wids``, ``dali``, ``timm``: small files for these readers, also for an index that is up to date.
            Kinds that an earlier index has are made anew with it.
        quiet: say nothing on standard error.

    Raises:
        UsageError: a request that cannot be met, or something else where the index would be written.
        StorageError: something cannot be read or written.
    """
    folder, target = Path(path), Path(path if out is None else out)
    if label not in ("auto", "cls", "none") and not (label.startswith("json:") and label.removeprefix("json:")):
        raise UsageError(f"label={label!r}: auto, cls, none or json:NAME")
    recipe: dict[str, Any] = {
        "image": None if image is None else image.lower(),
        "label": label,
        "split": None if split is None else dict(split),
        "classes": None if classes is None else list(classes),
        "stats": stats,
    }
    if folder.resolve() in target.resolve().parents:
        what = "lies inside the folder of the tars, where its links to them would be taken for more tars"
        raise UsageError(what, where=target, todo="Choose another folder for --out.")
    kinds, found = check_kinds(sidecars), find_tars(folder, split)
    try:
        earlier = earlier_index(target)
        if earlier is not None and is_current(target, earlier, found.tars, recipe):
            write_sidecars(target, earlier, kinds)
            return report_of("up to date", target, earlier, (), found.notes, None)
        lock = FolderLock(target)
        try:
            refuse_clashes(target, folder, found.tars)
            # Those of an earlier index say what the tars were: they are made anew, not just removed with it.
            kept = () if earlier is None else kinds_there(target, earlier)
            report = _Run(folder, target, found.tars, found.notes, recipe, quiet).run(earlier)
            write_sidecars(target, Manifest.read(target), check_kinds((*kinds, *kept)))
            return report
        finally:
            lock.release()
    except OSError as error:
        problem = explain(error, target)
        if out is None and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            todo = "Use --out to write the index into another folder."
            raise StorageError(problem.what, where=problem.where, todo=todo) from None
        raise problem from None


@dataclass(frozen=True)
class _Run:
    folder: Path
    out: Path
    tars: tuple[FoundTar, ...]
    notes: tuple[str, ...]
    recipe: Mapping[str, Any]
    quiet: bool

    def run(self, earlier: Manifest | None) -> IndexReport:
        work = self.out / WORK
        work.mkdir(exist_ok=True)
        label = None if self.recipe["label"] == "none" else self.recipe["label"]
        label = "cls" if label == "auto" else label
        surveys = self._surveys(label)
        shape = find_shape(surveys, image=self.recipe["image"], label=label, class_names=self.recipe["classes"])
        prefixed, notes = _prefixed(self.tars, surveys)
        if shape.turned:
            notes.append(
                f"{shape.turned:,} images declare an orientation, which is not applied: pixels are as stored"
            )
        clear_earlier(self.out, earlier)
        link_tars(self.out, self.folder, self.tars)
        splits, optional = {}, set[str]()
        for name in sorted({tar.split for tar in self.tars}):
            splits[name], lacking = self._write_split(name, surveys, shape, prefixed)
            optional |= lacking
        manifest = Manifest(
            recipe={**self.recipe, "depth": shape.depth},
            seed=0,
            fields={name: FieldInfo(kind, name in optional) for name, kind in shape.fields.items()},
            label=shape.labels.info,
            channels=shape.channels,
            classes=shape.labels.classes,
            inputs=InputInfo(sum(split.items for split in splits.values()), _digest(surveys)),
            splits=splits,
            foreign=ForeignInfo(prefixed),
        ).with_fingerprint()
        write_durably(self.out / layout.MANIFEST, manifest.to_json())
        shutil.rmtree(work, ignore_errors=True)
        return report_of("indexed", self.out, manifest, surveys, (*self.notes, *notes), shape, self.tars)

    def _surveys(self, label: str | None) -> list[Survey]:
        """Looks at all tars, several at a time: hashing, which takes most of it, leaves the interpreter to others."""
        pool, over = ThreadPoolExecutor(min(inspect_machine().cpus, _MOST_AT_A_TIME)), threading.Event()
        try:
            return list(pool.map(lambda tar: self._survey(tar, label, over), self.tars))
        finally:
            # After an interruption nobody waits for the ends of large tars.
            over.set()
            pool.shutdown(cancel_futures=True)

    def _survey(self, tar: FoundTar, label: str | None, over: threading.Event) -> Survey:
        """Looks at a tar, or takes what an interrupted run has seen of it."""
        state = f"{tar.name}\0{tar.size}\0{tar.mtime_ns}\0{label}"
        path = self.out / WORK / f"{hashlib.blake2b(state.encode(), digest_size=12).hexdigest()}.arrow"
        try:
            return read_survey(path)
        except (OSError, pa.ArrowException, ValueError, KeyError):
            if not self.quiet:
                print(f"reading {plain(tar.name)}.tar", file=sys.stderr, flush=True)
            return survey(tar.path, path, label, _LIMITS, over)

    def _write_split(
        self, name: str, surveys: Sequence[Survey], shape: Shape, prefixed: bool
    ) -> tuple[SplitInfo, set[str]]:
        """Writes a split's parquets and index; returns what the manifest says, and fields that samples lack."""
        counts = PixelCounts(shape.image.rpartition(".")[2], shape.channels, shape.depth, _LIMITS)
        shards, lacking, failed = [], set[str](), 0
        for tar, seen in zip(self.tars, surveys, strict=True):
            if tar.split != name:
                continue
            if self.recipe["stats"]:
                counts.open(tar.path)
            rows = shard_rows(tar, seen, shape, prefixed=prefixed, look=counts.add if self.recipe["stats"] else None)
            counts.close()
            good = rows.filter(pc.equal(rows["status"], Status.SUCCESS.value))
            lacking |= {field for field in shape.fields if good[f"{field}_offset"].null_count}
            failed += rows.num_rows - good.num_rows
            shards.append(ShardInfo(tar.name, good.num_rows, seen.size, seen.sha256, self._publish(tar, rows)))
        return SplitInfo(
            samples=sum(shard.samples for shard in shards),
            failed=failed,
            filtered=0,
            skipped=0,
            bytes=sum(shard.bytes for shard in shards),
            index_sha256=self._write_index(name, [shard.name for shard in shards], shape),
            shards=tuple(shards),
            stats=PixelStatistics.of(counts.histogram),
        ), lacking

    def _publish(self, tar: FoundTar, rows: pa.Table) -> str:
        """Writes a tar's rows; returns their digest."""
        unfinished, path = self.out / WORK / "rows.parquet", layout.parquet_path(self.out, tar.name)
        metadata.write(unfinished, rows)
        sync_file(unfinished)
        digest = _sha256(unfinished)
        unfinished.replace(path)
        return digest

    def _write_index(self, name: str, shards: Sequence[str], shape: Shape) -> str:
        schema = split_index.schema(tuple(shape.fields), shape.labels.info)
        unfinished, path = self.out / WORK / "split.index.arrow", layout.index_path(self.out, name)

        def parts() -> Iterator[pa.Table]:
            for number, shard in enumerate(shards):
                rows = metadata.read(layout.parquet_path(self.out, shard), split_index.columns(schema))
                yield split_index.rows(number, rows, schema)

        split_index.write(unfinished, parts(), schema)
        sync_file(unfinished)
        digest = _sha256(unfinished)
        unfinished.replace(path)
        return digest


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(surveys: Sequence[Survey]) -> str:
    return hashlib.sha256("".join(seen.sha256 for seen in surveys).encode()).hexdigest()


def _prefixed(tars: Sequence[FoundTar], surveys: Sequence[Survey]) -> tuple[bool, list[str]]:
    """Whether keys repeat between tars, and a note if so."""
    hashes = KeyHashes()
    for seen in surveys:
        hashes.add(list(keys(seen)))
    suspects = hashes.suspects()
    first: dict[str, str] = {}
    for tar, seen in zip(tars, surveys, strict=True) if suspects else ():
        for key in keys(seen):
            if key in first:
                note = (
                    f"keys repeat ({key!r} in {first[key]}.tar and {tar.name}.tar): all get their tar's name in front"
                )
                return True, [note]
            if key_hash(key) in suspects:
                first[key] = tar.name
    return False, []
