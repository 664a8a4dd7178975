"""``verify``: re-reads a whole dataset, trusts nothing, and names everything that is wrong.

The manifest says which files there must be. A parquet or index file is parsed only if its checksum is right; a tar is
walked in any case, and held against its rows where these are sound, so that damage is blamed on a sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from shardforge.errors import DamagedError, StorageError
from shardforge.shards import index, layout
from shardforge.shards.agreement import compare_index
from shardforge.shards.catalogue import Status
from shardforge.shards.consistency import manifest_problems, names_usable
from shardforge.shards.foreign_scan import ForeignScan
from shardforge.shards.manifest import Manifest, ShardInfo, read_bytes
from shardforge.shards.rows import Note, Rows, load
from shardforge.shards.scan import Scan
from shardforge.shards.sidecars import KINDS, check_sidecars, sidecar_names
from shardforge.shards.suspect_files import SuspectFiles
from shardforge.shards.tar_check import as_indexed, compare, count_samples, reader_of
from shardforge.shards.uniqueness import KeyHashes, key_hash
from shardforge.shards.verification import Verification, damaged_when_indexed


def verify(root: Path, *, progress: Callable[[str], None] | None = None) -> Verification:
    """Re-reads a dataset's files from front to back and holds them against each other.

    Memory holds one shard's rows, and eight bytes for each key of the dataset.

    Args:
        root: the dataset's folder.
        progress: is called with the name of every shard and index file before it is read.

    Raises:
        StorageError: there is no dataset at ``root``, only an unfinished one, or its manifest cannot be opened.
    """
    try:
        present = sorted(entry.name for entry in root.iterdir())
    except OSError as error:
        raise StorageError(f"cannot be listed ({error.strerror})", where=root) from None
    verifier = _Verifier(root, progress or (lambda _: None))
    manifest = verifier.read_manifest(present)
    if manifest is None:
        return verifier.result((), 0, 0)
    notes = verifier.check_presence(present, manifest)
    if names_usable(manifest):
        for split in manifest.splits:
            verifier.check_split(manifest, split)
        verifier.check_keys(manifest)
        verifier.check_sidecars(manifest)
    return verifier.result(notes, len(manifest.splits), sum(len(split.shards) for split in manifest.splits.values()))


class _Verifier:
    """The steps of a verification, and what they found so far."""

    def __init__(self, root: Path, progress: Callable[[str], None]) -> None:
        self._files = SuspectFiles(root, progress)
        self._samples = self._items = 0
        self._damaged_before: list[str] = []
        self._user_columns: tuple[str, pa.Schema] | None = None
        self._keys = KeyHashes()
        self._keyed: list[tuple[str, ShardInfo]] = []

    def result(self, notes: tuple[str, ...], splits: int, shards: int) -> Verification:
        damage = self._files.findings.sorted()
        return Verification(
            damage,
            (*notes, *damaged_when_indexed(self._damaged_before)),
            splits,
            shards,
            self._samples,
            self._items,
            self._files.bytes,
        )

    def read_manifest(self, present: list[str]) -> Manifest | None:
        note = self._files.note(layout.MANIFEST)
        if layout.MANIFEST not in present and layout.STAGING not in present and any(map(_is_content, present)):
            note("is missing; without it nothing else can be checked", None)
            return None
        data = read_bytes(self._files.root)
        self._files.bytes += len(data)
        try:
            manifest, self._files.manifest_intact = Manifest.parse_unchecked(data, self._files.root / layout.MANIFEST)
        except DamagedError as error:
            note(f"{error.what}; without it nothing else can be checked", None)
            return None
        if not self._files.manifest_intact:
            note("its checksum does not match: the file was changed or damaged", None)
        for problem in manifest_problems(manifest):
            note(problem, None)
        return manifest

    def check_presence(self, present: list[str], manifest: Manifest) -> tuple[str, ...]:
        """Finds own files that the manifest does not know; returns notes about all others."""
        owners: dict[str, str] = {}
        named = {layout.MANIFEST, layout.CARD, layout.BUILD_RECORD}
        named |= {name for kind in KINDS for name in sidecar_names(manifest, kind)}
        for name, split in manifest.splits.items():
            files = {f"{name}.index.arrow": split.index_sha256}
            for shard in split.shards:
                files |= {f"{shard.name}.tar": shard.sha256, f"{shard.name}.parquet": shard.parquet_sha256}
            named |= files.keys()
            owners |= {digest: file for file, digest in files.items()}
        self._files.owners, self._files.foreign = owners, manifest.foreign is not None
        notes = []
        for name in present:
            if name == layout.STAGING:
                notes.append(f"{name}: left over from a build")
            elif name not in named and layout.is_own_file(name):
                self._files.findings.add(name, "is not in the manifest")
            elif name not in named and manifest.foreign is None:
                notes.append(f"{name}: does not belong to the dataset")
        return tuple(notes)

    def check_split(self, manifest: Manifest, name: str) -> None:
        split = manifest.splits[name]
        found = self._open_index(manifest, name)
        statuses, complete, first = Counter[str](), True, 0
        for number, shard in enumerate(split.shards):
            rows = self._check_shard(manifest, name, shard)
            if rows is not None:
                statuses += rows.statuses
                if found is not None:
                    self._compare_index(manifest, name, found, first, number, rows)
            complete &= rows is not None
            first += shard.samples if rows is None else rows.statuses[Status.SUCCESS]
        if found is not None and len(found) != first:
            self._files.findings.add(
                f"{name}.index.arrow", f"lists {len(found):,} samples where the split has {first:,}"
            )
        for status in Status if complete else ():
            count = split.samples if status == Status.SUCCESS else getattr(split, status.value)
            if statuses[status] != count:
                what = f"split {name!r}: says {count:,} {status} where {statuses[status]:,} rows are"
                self._files.findings.add(layout.MANIFEST, what)

    def check_keys(self, manifest: Manifest) -> None:
        suspects = self._keys.suspects()
        first: dict[str, str] = {}
        for split, shard in self._keyed if suspects else ():
            file = f"{shard.name}.parquet"
            rows = self._load(manifest, split, shard, lambda what, key: None)
            for key in () if rows is None else rows.keys:
                if key in first:
                    self._files.findings.add(file, f"its key is also that of an item in {first[key]}", key)
                elif key_hash(key) in suspects:
                    first[key] = file

    def check_sidecars(self, manifest: Manifest) -> None:
        check_sidecars(self._files.root, manifest, self._files)

    def _check_shard(self, manifest: Manifest, split: str, shard: ShardInfo) -> Rows | None:
        parquet, tar = f"{shard.name}.parquet", f"{shard.name}.tar"
        rows = None
        if self._files.intact(parquet, shard.parquet_sha256):
            rows = self._load(manifest, split, shard, self._files.note(parquet))
        if rows is not None:
            self._items += rows.table.num_rows
            self._keys.add(rows.keys)
            self._keyed.append((split, shard))
            self._check_user_columns(parquet, rows.user)
            count = rows.statuses[Status.SUCCESS]
            if count != shard.samples:
                what = f"says {shard.samples:,} samples for {shard.name} where {count:,} rows are"
                self._files.findings.add(layout.MANIFEST, what)
        found = self._files.use(tar, reader_of(manifest, shard.name, rows))
        if found is not None:
            self._samples += count_samples(found, rows)
            self._check_tar(found, shard, rows, manifest)
        return rows

    def _check_tar(self, found: Scan | ForeignScan, shard: ShardInfo, rows: Rows | None, manifest: Manifest) -> None:
        tar, intact = f"{shard.name}.tar", found.sha256 == shard.sha256
        if not intact and self._files.swapped(tar, found.sha256):
            return
        if intact and isinstance(found, ForeignScan) and found.damage:
            self._damaged_before.append(tar)
        found = as_indexed(found) if intact else found
        before = self._files.findings.total()
        if found.size != shard.bytes:
            what = f"{found.size:,} bytes where {shard.bytes:,} belong"
            self._files.findings.add(*((layout.MANIFEST, f"{tar} has {what}") if intact else (tar, f"has {what}")))
        if rows is None:
            for damage in found.damage:
                self._files.findings.add(tar, f"byte {damage.offset:,}: {damage.what}")
        else:
            # Where the tar is the one that was built, it is the row that lies.
            note_row = self._files.note(f"{shard.name}.parquet" if intact else tar)
            compare(found, rows, manifest, note=self._files.note(tar), note_row=note_row)
        if intact or self._files.findings.total() > before:
            return
        if rows is not None and not self._files.manifest_intact:
            self._files.findings.add(
                layout.MANIFEST, f"the sha256 of {tar} is not the file's, whose samples are sound"
            )
        else:
            self._files.findings.add(tar, self._files.changed())

    def _load(self, manifest: Manifest, split: str, shard: ShardInfo, note: Note) -> Rows | None:
        most = manifest.splits[split].items
        try:
            path = layout.parquet_path(self._files.root, shard.name)
            return load(path, manifest, split=split, shard=shard.name, most=most, note=note)
        except Exception as error:  # pyarrow raises many kinds on content it did not write
            note(f"cannot be read as parquet ({_brief(error)})", None)
            return None

    def _check_user_columns(self, parquet: str, user: pa.Schema) -> None:
        if self._user_columns is None:
            self._user_columns = parquet, user
        elif not user.equals(self._user_columns[1]):
            self._files.findings.add(parquet, f"its further columns are not those of {self._user_columns[0]}")

    def _open_index(self, manifest: Manifest, split: str) -> index.SplitIndex | None:
        name = f"{split}.index.arrow"
        if not self._files.intact(name, manifest.splits[split].index_sha256):
            return None
        schema = index.schema(tuple(manifest.fields), manifest.label)
        try:
            found = index.SplitIndex(self._files.root / name, schema)
            for column in schema.names:
                found.column(column).validate(full=True)
        except Exception as error:  # pyarrow raises many kinds on content it did not write
            self._files.findings.add(name, f"cannot be used as an index ({_brief(error)})")
            return None
        return found

    def _compare_index(
        self, manifest: Manifest, split: str, found: index.SplitIndex, first: int, shard: int, rows: Rows
    ) -> None:
        note = self._files.note(f"{split}.index.arrow")
        schema = index.schema(tuple(manifest.fields), manifest.label)
        try:
            compare_index(found, first, shard, rows.table, schema, note=note)
        except Exception as error:  # pyarrow raises many kinds on content it did not write
            note(f"cannot be held against the rows of shard {shard:,} ({_brief(error)})", None)


def _is_content(name: str) -> bool:
    return layout.is_own_file(name) and name not in (layout.CARD, layout.BUILD_RECORD)


def _brief(error: Exception) -> str:
    text = str(error).splitlines()
    return (text[0] if text else type(error).__name__)[:200]
