"""What a sample's fields are made from: members of the shard, the index, or parquet columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shardforge.errors import DamagedError, StorageError, UsageError
from shardforge.shards import layout
from shardforge.shards.index import Ids
from shardforge.shards.manifest import FieldInfo
from shardforge.stream.decode import ImageDecoder, Reduce, Undecodable, image_decoder
from shardforge.stream.reader import Split

VALID = "valid"
MISSING_LABEL = -100


Gathered = Sequence[Any] | npt.NDArray[Any]
"""One entry per sample."""


class Field(Protocol):
    """A field of samples that are addressed by their numbers in the split. Pickles.

    Attributes:
        ready: whether what :meth:`gather` gives are the values already.
        light: whether that is a few numbers or a word a sample.
    """

    ready: bool
    light: bool

    def gather(self, ids: Ids) -> Gathered:
        """The cheap part, for many samples at once: what :meth:`value` needs for each."""

    def value(self, number: int, gathered: Any) -> Any:
        """The value for sample ``number``: a NumPy array or scalar, or another object."""

    def blank(self, example: Any) -> Any:
        """What stands in a missing row, given a real row's value."""


def blank(example: Any) -> Any:
    """Zeros for arrays and numbers, an empty text for a text, None otherwise."""
    if isinstance(example, np.ndarray | np.generic):
        return np.zeros_like(example)[()]
    return "" if isinstance(example, str) else None


class Member:
    """A stored member, decoded. A sample that lacks an optional text has ``""``, an optional json None."""

    ready, light = False, True

    def __init__(self, split: Split, name: str, info: FieldInfo) -> None:
        self._split, self._name, self._info = split, name, info
        self._decode = self._decoder()

    def __getstate__(self) -> tuple[Split, str, FieldInfo]:
        return self._split, self._name, self._info

    def __setstate__(self, state: tuple[Split, str, FieldInfo]) -> None:
        self._split, self._name, self._info = state
        self._decode = self._decoder()

    def _decoder(self) -> ImageDecoder | None:
        if self._info.kind != "image":
            return None
        manifest = self._split.manifest
        return image_decoder(self._name, manifest.channels, manifest.depth)

    @property
    def reducible(self) -> bool:
        """Whether it may be decoded at a reduced scale."""
        return self._info.kind == "picture" or self._name.endswith(".jpg") or self._name == "jpg"

    def gather(self, ids: Ids) -> Sequence[tuple[int, int, int]]:
        extents = self._split.index.extents(self._name, ids)
        return list(zip(extents.shard.tolist(), extents.offset.tolist(), extents.size.tolist(), strict=True))

    def value(self, number: int, gathered: tuple[int, int, int]) -> Any:
        return self.decoded(number, gathered)

    def images(self, ids: Ids, gathered: Gathered) -> Callable[[int, Reduce | None], Any]:
        """Decodes the image of a row of what was gathered for ``ids``: reduced as the second argument says, as a
        read-only view where it can be one. What goes wrong is told by :meth:`decoded` only."""
        view, decode = self._split.files.view, self._decode
        if decode is None:
            return lambda row, reduce: self.decoded(int(ids[row]), gathered[row], reduce, False)
        return lambda row, reduce: decode(view(*gathered[row]), reduce, False)

    def decoded(
        self, number: int, gathered: tuple[int, int, int], reduce: Reduce | None = None, copy: bool = True
    ) -> Any:
        """:meth:`value`, an image perhaps at a reduced scale or as a read-only view; see :func:`decode`."""
        if self._decode is not None:
            try:
                return self._decode(self._split.files.view(*gathered), reduce, copy)
            except (DamagedError, StorageError, Undecodable):
                # What follows takes more time, and tells what is wrong with which sample.
                pass
        if gathered[2] < 0 and self._info.optional:
            if self._info.kind in ("text", "json"):
                return "" if self._info.kind == "text" else None
            raise UsageError(
                f"sample {self._split.key(number)} has no {self._name!r}, which is optional in this dataset",
                where=self._split.root,
                todo=f'Choose those that have it: where=pyarrow.compute.field("{self._name}_size").is_valid().',
            )
        value = self._split.value(number, self._name, self._info, *gathered, reduce=reduce, copy=copy)
        return np.int64(value) if self._info.kind == "class" else value

    def blank(self, example: Any) -> Any:
        return blank(example)


class Key:
    """The sample's key."""

    ready, light = True, True

    def __init__(self, split: Split) -> None:
        self._index = split.index

    def gather(self, ids: Ids) -> Sequence[str]:
        return self._index.keys(ids)

    def value(self, number: int, gathered: str) -> str:
        return gathered

    def blank(self, example: Any) -> str:
        return ""


class Label:
    """The label: int64 (class), float32 [K] of zeros and ones (multi), float32 or float32 [D] (number)."""

    ready = True

    def __init__(self, split: Split) -> None:
        self._split = split
        self.light = split.manifest.label.kind == "class"
        self._classes = max(split.manifest.classes.values(), default=-1) + 1

    def gather(self, ids: Ids) -> Gathered:
        found, info = self._split.index.labels(ids), self._split.manifest.label
        if info.kind == "class":
            return np.asarray(found, np.int64)
        if info.kind == "multi":
            return self._multi_hot(ids, found)
        if info.size == 1:
            return np.asarray(found, np.float32)
        flat = np.asarray(found.flatten(), np.float32)
        if len(flat) != len(ids) * info.size:
            odd = np.flatnonzero(np.asarray(found.value_lengths()) != info.size)
            raise self._damaged(ids, odd, f"a label that is not {info.size} numbers")
        # Arrow's own memory is read-only, and rows belong to whoever gets them.
        return flat.reshape(len(ids), info.size).copy()

    def _multi_hot(self, ids: Ids, found: pa.Array) -> npt.NDArray[np.float32]:
        out = np.zeros((len(found), self._classes), np.float32)
        present = np.asarray(found.flatten(), np.int64)
        rows = np.repeat(np.arange(len(found)), np.asarray(found.value_lengths()))
        odd = rows[(present < 0) | (present >= self._classes)]
        if len(odd):
            raise self._damaged(ids, odd, f"a label that is none of the {self._classes} classes")
        out[rows, present] = 1
        return out

    def _damaged(self, ids: Ids, rows: npt.NDArray[np.int64], what: str) -> DamagedError:
        """What is wrong with the index at the first of some rows."""
        index, key = layout.index_path(self._split.root, self._split.name), self._split.key(int(ids[rows[0]]))
        where = f"{index}, sample {key}"
        return DamagedError(what, where=where, todo="`shardforge inspect --verify` checks the whole dataset.")

    def value(self, number: int, gathered: Any) -> Any:
        return gathered

    def blank(self, example: Any) -> Any:
        return np.full_like(example, MISSING_LABEL)[()]


class Column:
    """A parquet column. Numbers and booleans without nulls, and floats (null → NaN), come as NumPy scalars of the
    column's own type; everything else as plain Python values. Reads the column once per process."""

    ready = True

    def __init__(self, split: Split, name: str) -> None:
        self._split, self._name = split, name
        self._content: npt.NDArray[Any] | pa.ChunkedArray | None = self._load()
        self.light = isinstance(self._content, np.ndarray)

    def __getstate__(self) -> tuple[Split, str, bool]:
        return self._split, self._name, self.light

    def __setstate__(self, state: tuple[Split, str, bool]) -> None:
        self._split, self._name, self.light = state
        self._content = None

    def _load(self) -> npt.NDArray[Any] | pa.ChunkedArray:
        column = self._split.table([self._name])[self._name]
        kind = column.type
        plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        if pa.types.is_floating(kind) or (plain and not column.null_count):
            return np.asarray(column.to_numpy())
        return column

    def gather(self, ids: Ids) -> Gathered:
        if self._content is None:
            self._content = self._load()
        if isinstance(self._content, np.ndarray):
            return self._content[ids]
        return self._content.take(pa.array(ids)).to_pylist()  # type: ignore[no-any-return]

    def value(self, number: int, gathered: Any) -> Any:
        return gathered

    def blank(self, example: Any) -> Any:
        return blank(example)


def choose_fields(split: Split, names: Sequence[str] | None) -> dict[str, Field]:
    """The fields of these names, in their order; ``valid`` is left to the caller.

    Args:
        names: ``image``, ``label``, ``key``, a stored member (``mask`` stands for ``mask.png``, ``left`` for
            ``left.png``, ``left.jpg`` or ``left.webp``), or a parquet column.
            None: ``image``, and ``label`` where there is one.

    Raises:
        UsageError: there is no such field; names those there are.
    """
    labelled = split.manifest.label.kind != "none"
    if names is None:
        names = ("image", "label") if labelled else ("image",)
    if isinstance(names, str) or not names:
        raise UsageError(f"fields={names!r}: a list of names is needed", todo='For example fields=("image", "key").')
    columns = split.schema().names
    return {name: _field(split, name, columns) for name in names if name != VALID}


def _field(split: Split, name: str, columns: Sequence[str]) -> Field:
    manifest, root = split.manifest, split.root
    if name == "image":
        return Member(split, manifest.image_field, manifest.fields[manifest.image_field])
    if name == "key":
        return Key(split)
    if name == "label":
        if manifest.label.kind == "none":
            raise UsageError("this dataset has no labels", where=root, todo="Leave 'label' out of fields.")
        return Label(split)
    for member in (name, *(f"{name}.{form}" for form in ("png", "jpg", "webp"))):
        if member in manifest.fields:
            return Member(split, member, manifest.fields[member])
    if name in columns:
        return Column(split, name)
    raise UsageError(f"no field {name!r}", where=Path(root), todo=f"There are: {_available(split, columns)}.")


def _available(split: Split, columns: Sequence[str]) -> str:
    label = ["label"] if split.manifest.label.kind != "none" else []
    names = ["image", *label, "key", *sorted(split.manifest.fields), *columns]
    return ", ".join(dict.fromkeys(name for name in names if name != "label" or label))
