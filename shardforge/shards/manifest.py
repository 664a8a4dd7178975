"""``dataset.json``: written last, its presence means the dataset is complete."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from shardforge.errors import DamagedError, StorageError
from shardforge.shards.layout import FORMAT, MANIFEST, STAGING
from shardforge.shards.regular import open_regular
from shardforge.shards.statistics import PixelStatistics

LabelKind = Literal["class", "multi", "number", "none"]
ImageField = Literal["jpg", "png", "webp", "npy"]
FieldKind = Literal["image", "volume", "class", "mask", "picture", "text", "json", "array"]


@dataclass(frozen=True)
class FieldInfo:
    """A member that samples have.

    Attributes:
        kind: what its bytes mean. One field is the ``image`` (or ``volume``); further ones in colour are ``picture``.
        optional: whether samples may lack it.
    """

    kind: FieldKind
    optional: bool = False


@dataclass(frozen=True)
class LabelInfo:
    """The dataset's kind of label.

    Attributes:
        kind: ``class`` (one of the classes), ``multi`` (any of them), ``number`` (regression) or ``none``.
        size: how many numbers a regression label has; 1 otherwise.
    """

    kind: LabelKind
    size: int = 1


@dataclass(frozen=True)
class ShardInfo:
    """One shard. ``samples`` counts successes; ``bytes`` and ``sha256`` are of the tar."""

    name: str
    samples: int
    bytes: int
    sha256: str
    parquet_sha256: str


@dataclass(frozen=True)
class SplitInfo:
    """One split. Its planned items are ``samples + failed + filtered + skipped``."""

    samples: int
    failed: int
    filtered: int
    skipped: int
    bytes: int
    index_sha256: str
    shards: tuple[ShardInfo, ...]
    stats: PixelStatistics | None = None

    @property
    def items(self) -> int:
        return self.samples + self.failed + self.filtered + self.skipped


@dataclass(frozen=True)
class InputInfo:
    """What the dataset was made from: the number of planned items and a digest of their description."""

    items: int
    sha256: str


@dataclass(frozen=True)
class ForeignInfo:
    """The tars were made elsewhere and only indexed: none of the format's rules for tars holds for them.

    Attributes:
        prefixed: whether keys are ``SHARD/KEY``, because the tars' own keys repeat from one tar to another.
    """

    prefixed: bool


@dataclass(frozen=True)
class Manifest:
    """What ``dataset.json`` says.

    Attributes:
        recipe: complete and resolved, as plain JSON values.
        fields: member name → what it is.
        classes: class name → id; empty unless labels are classes.
        channels: of the images: 1 or 3, of ``npy`` any number.
        groups: frozen assignment of group digests to splits (``--split-by stratified`` only).
        privacy: of DICOM: ``profile`` (the list of attributes that became columns), ``identifiers`` (``hash`` or
            ``keep``) and, where they are hashed, ``key_id``; otherwise empty.
        foreign: of tars made elsewhere; the file has no such entry for a dataset that was built.
    """

    recipe: dict[str, Any]
    seed: int
    fields: dict[str, FieldInfo]
    label: LabelInfo
    channels: int
    classes: dict[str, int]
    inputs: InputInfo
    splits: dict[str, SplitInfo]
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    privacy: dict[str, str] = field(default_factory=dict)
    foreign: ForeignInfo | None = field(default=None, metadata={"left_out": True})
    fingerprint: str = ""
    format: str = FORMAT

    @property
    def image_field(self) -> str:
        """The member that holds the image or volume: ``jpg``, ``png``, ``webp`` or ``npy``."""
        return next(name for name, info in self.fields.items() if info.kind in ("image", "volume"))

    @property
    def depth(self) -> int:
        """Bits per sample of the images, 8 or 16."""
        return 16 if self.recipe.get("depth") == 16 or self.modality_values else 8

    @property
    def modality_values(self) -> bool:
        """Whether the images hold DICOM modality values (Hounsfield units, say; int16 or float32) that no window was
        applied to."""
        dicom = self.recipe.get("dicom")
        return isinstance(dicom, dict) and dicom.get("window") == "none"

    @property
    def items(self) -> int:
        return sum(split.items for split in self.splits.values())

    def with_fingerprint(self) -> Self:
        return replace(self, fingerprint=self.compute_fingerprint())

    def compute_fingerprint(self) -> str:
        """A digest of what a reader's order depends on: names, counts and payload hashes, not parquet bytes."""
        digest = hashlib.sha256(FORMAT.encode())
        for name, split in sorted(self.splits.items()):
            for shard in split.shards:
                digest.update(f"\n{name} {shard.name} {shard.samples} {shard.sha256}".encode())
        return digest.hexdigest()

    def to_json(self) -> bytes:
        """The file's bytes: sorted keys, and last a checksum of the file without that entry."""
        content = _plain(asdict(self))
        if self.foreign is None:
            del content["foreign"]
        content["checksum"] = _checksum(content)
        return _dump(content)

    def write(self, path: Path) -> None:
        path.write_bytes(self.to_json())

    @classmethod
    def read(cls, root: Path) -> Self:
        """Reads and checks ``root/dataset.json``.

        Raises:
            StorageError: there is none, or it cannot be read.
            DamagedError: it is not what a build writes.
        """
        return cls.parse(read_bytes(root), root / MANIFEST)

    @classmethod
    def parse(cls, data: bytes, where: Path) -> Self:
        """See :meth:`read`."""
        manifest, intact = cls.parse_unchecked(data, where)
        if not intact:
            raise DamagedError("its checksum does not match: the file was changed or damaged", where=where)
        return manifest

    @classmethod
    def parse_unchecked(cls, data: bytes, where: Path) -> tuple[Self, bool]:
        """A manifest whose checksum may be wrong, so that damage elsewhere can still be looked for.

        Returns:
            The manifest, and whether the file's bytes and checksum are what a build writes.

        Raises:
            DamagedError: it has not the structure of a manifest.
        """
        try:
            content = json.loads(data)
            if not isinstance(content, dict):
                raise ValueError("no JSON object")
            if content.get("format") != FORMAT:
                raise ValueError(f"format {content.get('format')!r} where this version reads {FORMAT!r}")
            intact = _is_intact(data, content.pop("checksum", None))
            manifest = _from_plain(cls, content)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise DamagedError(f"not a valid manifest ({str(error)[:200]})", where=where) from None
        assert isinstance(manifest, cls)
        return manifest, intact


def read_bytes(root: Path) -> bytes:
    """The bytes of ``root/dataset.json``.

    Raises:
        StorageError: there is none, or it cannot be read.
    """
    path = root / MANIFEST
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        if (root / STAGING).exists():
            raise StorageError(
                f"this dataset is unfinished: there is no {MANIFEST} yet, but a {STAGING} folder",
                where=root,
                todo="Run the same build command again to finish it.",
            ) from None
        raise StorageError(f"no {MANIFEST} here: not a shardforge dataset", where=root) from None
    except OSError as error:
        raise StorageError(f"cannot be read ({error.strerror})", where=path) from None


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, indent=1, ensure_ascii=False).encode() + b"\n"


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dump(content)).hexdigest()


def _is_intact(data: bytes, checksum: Any) -> bool:
    """Whether ``checksum`` is that of ``data`` without the line that states it. To put the JSON together again and
    compare would take seconds where there are very many shards."""
    line = f' "checksum": {json.dumps(checksum)},\n'.encode()
    before, found, after = data.partition(b"\n" + line)
    return bool(found) and hashlib.sha256(before + b"\n" + after).hexdigest() == checksum


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _from_plain(kind: Any, value: Any) -> Any:
    """Plain JSON values → the (nested) dataclass they were made from, checking every type on the way."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _from_plain(next(a for a in args if a is not type(None)), value)
    if kind is Any:
        return value
    if origin is Literal:
        if value not in args:
            raise ValueError(f"{value!r} is none of {args}")
        return value
    if origin is tuple:
        return tuple(_from_plain(args[0], item) for item in _typed(value, list))
    if origin is dict:
        return {key: _from_plain(args[1], item) for key, item in _typed(value, dict).items()}
    if hasattr(kind, "__dataclass_fields__"):
        hints, names, needed = _entries(kind)
        if not needed <= set(_typed(value, dict)) <= names:
            raise ValueError(f"{kind.__name__} has the entries {sorted(value)} where {sorted(needed)} belong")
        return kind(**{name: _from_plain(hints[name], entry) for name, entry in value.items()})
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _typed(value, kind)


@cache
def _entries(kind: Any) -> tuple[dict[str, Any], set[str], set[str]]:
    """Types and names of a dataclass's fields, and which of them must be there."""
    names = {f.name for f in fields(kind)}
    return get_type_hints(kind), names, names - {f.name for f in fields(kind) if f.metadata.get("left_out")}


def _typed(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{value!r} where {kind.__name__} belongs")
    return value
