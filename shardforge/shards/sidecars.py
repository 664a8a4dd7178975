"""Small files beside the shards that other readers want: wids, DALI and timm.

They say nothing that manifest and parquet rows do not say, so they are no part of a dataset's identity: they are
written when asked for, verified where they are, and go when the dataset goes.

=====  =========================  ===========================================================================
wids   ``SPLIT.shardindex.json``  the shards of one split with their numbers of samples: an index of all splits
                                  would have people train on what is to be held back. Where there is one split
                                  only, the same also as ``shardindex.json``, the name that wids readers look for
dali   ``SHARD.idx``              for every sample ``field offset size name`` of each member (version 1.2)
timm   ``_info.json``             the shards of all splits with their numbers of samples
=====  =========================  ===========================================================================
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from shardforge.errors import DamagedError, UsageError
from shardforge.shards import layout, metadata
from shardforge.shards.catalogue import Status
from shardforge.shards.manifest import Manifest
from shardforge.shards.regular import open_regular
from shardforge.shards.suspect_files import SuspectFiles
from shardforge.storage import explain, write_durably

KINDS = ("wids", "dali", "timm")
TIMM = layout.TIMM

_MAKER = {"made_by": "shardforge"}
"""Tells our files from those that somebody else put beside their tars."""
_MD5 = re.compile(r"[0-9a-f]{32}")

Md5 = Callable[[str], str]
"""Shard → MD5 of its tar in hex."""


def check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """The kinds, each once.

    Raises:
        UsageError: an unknown one.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UsageError(f"sidecars for {kind!r} are not known", todo=f"Known: {', '.join(KINDS)}.")
    return tuple(dict.fromkeys(kinds))


def sidecar_names(manifest: Manifest, kind: str) -> list[str]:
    """The files of one kind, as paths inside the dataset's folder."""
    if kind == "wids":
        return [f"{split}.shardindex.json" for split in manifest.splits] + [layout.WIDS] * (len(manifest.splits) == 1)
    if kind == "timm":
        return [TIMM]
    return [f"{shard.name}.idx" for split in manifest.splits.values() for shard in split.shards]


def kinds_there(root: Path, manifest: Manifest) -> tuple[str, ...]:
    """The kinds of which we have written a file that is still there."""
    names = {kind: sidecar_names(manifest, kind) for kind in KINDS}
    return tuple(kind for kind in KINDS if any((root / n).exists() and _is_ours(root / n) for n in names[kind]))


def write_sidecars(root: Path, manifest: Manifest, kinds: Sequence[str]) -> list[str]:
    """Writes the files of some kinds; returns their names. For wids every tar is read once more, for its MD5.

    A ``shardindex.json`` that somebody else put beside their tars stays as it is.

    Raises:
        UsageError: an unknown kind, or a file that somebody else put there.
        StorageError, DamagedError: something cannot be read or written.
    """
    written = []
    for kind in check_kinds(kinds):
        for name in sidecar_names(manifest, kind):
            if name != layout.WIDS and manifest.foreign is not None and not _is_ours(root / name):
                raise UsageError("is somebody else's and stands where a sidecar belongs", where=root / name)
        try:
            for name, content in _contents(root, manifest, kind, lambda shard: _md5(layout.tar_path(root, shard))):
                if name == layout.WIDS and manifest.foreign is not None and not _is_ours(root / name):
                    continue
                if not (root / name).is_file() or (root / name).read_bytes() != content:
                    write_durably(root / name, content)
                written.append(name)
        except OSError as error:
            raise explain(error, root) from None
    return written


def remove_sidecars(root: Path, manifest: Manifest) -> None:
    """Removes the files of every kind that we have written for a dataset."""
    for kind in KINDS:
        for name in sidecar_names(manifest, kind):
            if _is_ours(root / name):
                (root / name).unlink(missing_ok=True)


def check_sidecars(root: Path, manifest: Manifest, files: SuspectFiles) -> None:
    """Notes every sidecar that does not say what the dataset says; kinds of which there is no file do not count.

    The MD5 sums for wids are taken as they stand: the tars have better checksums.
    """
    foreign = manifest.foreign is not None
    if not all(layout.is_shard(s.name, foreign=foreign) for split in manifest.splits.values() for s in split.shards):
        return
    for kind in KINDS:
        there = [name for name in sidecar_names(manifest, kind) if (root / name).exists()]
        there = [name for name in there if not foreign or _is_ours(root / name)]
        if not there:
            continue
        try:
            for name, content in _contents(root, manifest, kind, _told_md5(root, there)):
                if name == layout.WIDS and name not in there:
                    continue
                if name not in there:
                    files.findings.add(name, "is missing, though others of its kind are there")
                elif _read(root / name) != content:
                    files.findings.add(name, f"does not say what the dataset says; --sidecars {kind} writes it anew")
        except DamagedError:
            return  # a parquet that is damaged has been named already


def _contents(root: Path, manifest: Manifest, kind: str, md5: Md5) -> Iterator[tuple[str, bytes]]:
    if kind == "timm":
        splits = {
            name: {
                "name": name,
                "num_samples": info.samples,
                "filenames": [f"{shard.name}.tar" for shard in info.shards],
                "shard_lengths": [shard.samples for shard in info.shards],
            }
            for name, info in manifest.splits.items()
        }
        yield TIMM, _dump({**_MAKER, "splits": splits})
        return
    for split, info in manifest.splits.items():
        if kind == "wids":
            shards = [
                {
                    "url": f"{shard.name}.tar",
                    "md5sum": md5(shard.name),
                    "nsamples": shard.samples,
                    "filesize": shard.bytes,
                }
                for shard in info.shards
            ]
            head = {**_MAKER, "__kind__": "wids-shard-index-v1", "wids_version": 1, "name": split}
            content = _dump({**head, "shardlist": shards})
            yield f"{split}.shardindex.json", content
            if len(manifest.splits) == 1:
                yield layout.WIDS, content
        else:
            yield from ((f"{s.name}.idx", _dali(layout.parquet_path(root, s.name), manifest)) for s in info.shards)


def _dali(parquet: Path, manifest: Manifest) -> bytes:
    """One line for each sample, its members in the order in which they lie."""
    columns = ["key", "status", *(f"{name}_{part}" for name in manifest.fields for part in ("offset", "size"))]
    rows = [row for row in metadata.read(parquet, columns).to_pylist() if row["status"] == Status.SUCCESS]
    lines = [f"v1.2 {len(rows)}"]
    for row in rows:
        members = sorted(
            (row[f"{name}_offset"], name) for name in manifest.fields if row[f"{name}_offset"] is not None
        )
        # Blanks part the columns of the file; names are there for messages only.
        key = re.sub(r"\s", "_", row["key"])
        lines.append(" ".join(f"{name} {offset} {row[f'{name}_size']} {key}.{name}" for offset, name in members))
    return "\n".join([*lines, ""]).encode()


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode() + b"\n"


def _md5(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()  # type: ignore[arg-type]


def _told_md5(root: Path, names: Sequence[str]) -> Md5:
    """What the files themselves say, where it may be an MD5."""
    told: dict[str, str] = {}
    for name in names:
        try:
            entries = json.loads(_read(root / name))["shardlist"]
            told |= {entry["url"]: entry["md5sum"] for entry in entries if _MD5.fullmatch(entry["md5sum"])}
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return lambda shard: told.get(f"{shard}.tar", "")


def _read(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError:
        return b""


def _is_ours(path: Path) -> bool:
    """Whether a file may be taken for one of ours; one that is not there may be written."""
    if not path.exists():
        return True
    start = _read(path)[:1024]
    return start.startswith(b"v1.2 ") if path.suffix == ".idx" else b'"made_by": "shardforge"' in start
