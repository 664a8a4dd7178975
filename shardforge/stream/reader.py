"""Opening a dataset and looking at its samples one by one."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shardforge.errors import DamagedError, ShardforgeError, StorageError, UsageError
from shardforge.shards import index, layout, metadata
from shardforge.shards.catalogue import Status
from shardforge.shards.index import SplitIndex
from shardforge.shards.manifest import FieldInfo, Manifest
from shardforge.stream.decode import Reduce, Undecodable, decode
from shardforge.stream.fetch import ShardFiles


class Split:
    """One split: its samples by number, 0 … len-1 in shard order. Pickles; opens files again where it is unpickled.

    Attributes:
        root, name: where it is.
        manifest: of the whole dataset.
        index: see :class:`~shardforge.shards.index.SplitIndex`.
        files: the tars; see :class:`~shardforge.stream.fetch.ShardFiles`.
    """

    def __init__(self, root: Path, name: str, manifest: Manifest) -> None:
        self.root, self.name, self.manifest = root, name, manifest
        self._depth = manifest.depth
        info = manifest.splits[name]
        self.counts = tuple(shard.samples for shard in info.shards)
        self.shards = tuple(shard.name for shard in info.shards)
        self.files = ShardFiles(
            [layout.tar_path(root, shard.name) for shard in info.shards], [shard.bytes for shard in info.shards]
        )
        self._index_path = layout.index_path(root, name)
        self.index = SplitIndex(self._index_path, index.schema(tuple(manifest.fields), manifest.label))
        if not len(self.index) == info.samples == sum(self.counts):
            raise DamagedError(
                f"{len(self.index)} samples where the manifest has {info.samples}", where=self._index_path
            )

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """Sample ``number``; see :meth:`Dataset.__getitem__`."""
        place = _place(number, len(self), f"split {self.name!r}")
        ids = np.array([place])
        sample: dict[str, Any] = {"key": self.index.keys(ids)[0], "split": self.name}
        if self.manifest.label.kind != "none":
            sample["label"] = self.index.labels(ids)[0].as_py()
        for member, info in self.manifest.fields.items():
            if info.kind != "class":
                extents = self.index.extents(member, ids)
                if extents.size[0] >= 0 or not info.optional:
                    extent = int(extents.shard[0]), int(extents.offset[0]), int(extents.size[0])
                    name = "image" if member == self.manifest.image_field else member
                    sample[name] = self.value(place, member, info, *extent)
        return sample

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[number] for number in range(len(self)))

    def key(self, number: int) -> str:
        """The key of sample ``number``."""
        return self.index.keys(np.array([number]))[0]

    def value(
        self,
        number: int,
        member: str,
        info: FieldInfo,
        shard: int,
        offset: int,
        size: int,
        *,
        reduce: Reduce | None = None,
        copy: bool = True,
    ) -> Any:
        """The value of a member of sample ``number`` that lies at ``offset`` of ``shard``; see :func:`decode`.

        A JPEG about which the decoder complains is taken as it is if the build already had it so (its digest is the
        one in the parquet), and is damage otherwise.

        Raises:
            DamagedError: it cannot be decoded, or is not there.
            StorageError: the shard cannot be read.
        """
        if size < 0:
            raise self._problem(DamagedError, number, member, "the index says that it is missing")
        try:
            payload = self.files.view(shard, offset, size)
        except (DamagedError, StorageError) as error:
            raise self._problem(type(error), number, member, error.what) from None
        try:
            channels, depth = self.manifest.channels, self._depth
            try:
                return decode(payload, member, info, channels, depth=depth, reduce=reduce, copy=copy)
            except Undecodable as error:
                if not (error.tolerable and self._as_built(number, payload)):
                    raise
                return decode(payload, member, info, channels, strict=False, reduce=reduce)
        except Undecodable as error:
            raise self._problem(DamagedError, number, member, str(error)) from None

    def _problem(self, kind: type[ShardforgeError], number: int, member: str, what: str) -> ShardforgeError:
        ids = np.array([number])
        shard = self.shards[int(self.index.places(ids)[0][0])]
        where = f"{layout.tar_path(self.root, shard)}, sample {self.key(number)}, field {member}"
        return kind(what, where=where, todo="`shardforge inspect --verify` checks the whole dataset.")

    def _as_built(self, number: int, payload: memoryview) -> bool:
        shard, row = (int(part[0]) for part in self.index.places(np.array([number])))
        digests = metadata.read(layout.parquet_path(self.root, self.shards[shard]), ["sha256"])["sha256"]
        return row < len(digests) and digests[row].as_py() == hashlib.sha256(payload).hexdigest()

    def schema(self) -> pa.Schema:
        """The parquet columns. A split without shards has none."""
        if not self.shards:
            return pa.schema([])
        path = layout.parquet_path(self.root, self.shards[0])
        try:
            return pq.read_schema(path)
        except (OSError, pa.ArrowException) as error:
            raise DamagedError(f"cannot be read as parquet ({str(error).splitlines()[0]})", where=path) from None

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Parquet rows of the samples, row ``i`` for sample ``i``; all columns or some."""
        wanted = None if columns is None else list(dict.fromkeys([*columns, "status"]))
        parts = []
        for shard, count in zip(self.shards, self.counts, strict=True):
            path = layout.parquet_path(self.root, shard)
            rows = metadata.read(path, wanted)
            rows = rows.filter(pc.equal(rows["status"], Status.SUCCESS.value))
            if rows.num_rows != count:
                raise DamagedError(f"{rows.num_rows} successful rows for {count} samples", where=path)
            parts.append(rows if columns is None else rows.select(list(columns)))
        return pa.concat_tables(parts) if parts else pa.table({})


class Dataset:
    """A compiled dataset. Samples are numbered through all splits, in the order of :attr:`splits`.

    Attributes:
        root: the folder.
        manifest: what ``dataset.json`` says.
        splits: name → :class:`Split`, which also has ``len`` and ``[i]``.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.root = local_folder(path)
        self.manifest = Manifest.read(self.root)
        self.splits: Mapping[str, Split] = MappingProxyType(
            {name: Split(self.root, name, self.manifest) for name in self.manifest.splits}
        )

    def __reduce__(self) -> tuple[type[Dataset], tuple[Path]]:
        return type(self), (self.root,)

    def __repr__(self) -> str:
        counts = ", ".join(f"{name}: {len(split)}" for name, split in self.splits.items())
        return f"<shardforge dataset {str(self.root)!r}, {counts}>"

    def __len__(self) -> int:
        return sum(len(split) for split in self.splits.values())

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One sample: ``key``, ``split``, ``image`` (uint8 or uint16 [H, W, C], RGB; a volume is [Z, Y, X, 1]),
        ``label`` as the parquet has it (a class id, a list of them, a number or a list of numbers; absent in a
        dataset without labels), and every other stored field that the sample has.

        Raises:
            IndexError: there is no such sample.
            DamagedError, StorageError: it cannot be read.
        """
        place = _place(number, len(self), "the dataset")
        for split in self.splits.values():
            if place < len(split):
                return split[place]
            place -= len(split)
        raise AssertionError

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (sample for split in self.splits.values() for sample in split)

    @property
    def classes(self) -> dict[str, int]:
        """Class name → id; empty unless labels are classes."""
        return dict(self.manifest.classes)

    @cached_property
    def metadata(self) -> pa.Table:
        """The parquet rows of all samples: row ``i`` describes ``self[i]``. Items that became no sample are only in
        the parquet files."""
        parts = [split.table() for split in self.splits.values() if split.shards]
        return pa.concat_tables(parts) if parts else pa.table({})


def open_dataset(path: str | PathLike[str]) -> Dataset:
    """Opens a compiled dataset.

    Raises:
        StorageError: there is none at ``path``, or it cannot be read.
        DamagedError: it is not what a build writes.
    """
    return Dataset(path)


def local_folder(path: str | PathLike[str]) -> Path:
    """The folder of a dataset.

    Raises:
        UsageError: it is a URL.
    """
    if "://" in str(path):
        raise UsageError(
            "indexed datasets are read from local folders, not from URLs",
            where=path,
            todo="SequentialDataset reads the tars of a web server, or of a command (pipe:).",
        )
    return Path(path)


def choose_split(root: Path, manifest: Manifest, name: str) -> Split:
    """Opens one split.

    Raises:
        UsageError: there is no such split; names those there are.
    """
    if name not in manifest.splits:
        raise UsageError(f"no split {name!r}", where=root, todo=f"There are: {', '.join(sorted(manifest.splits))}.")
    return Split(root, name, manifest)


def _place(number: int, length: int, what: str) -> int:
    place = operator.index(number)
    if not -length <= place < length:
        raise IndexError(f"{what} has {length} samples, there is no sample {number}")
    return place % length
