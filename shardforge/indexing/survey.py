"""The first look at a tar: what is in it, kept in a file until all tars together have told what the dataset is."""

from __future__ import annotations

import json
import string
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.codecs.limits import Limits
from shardforge.indexing.pictures import FORMS, TYPE, picture_facts
from shardforge.shards.foreign_scan import ForeignSample, scan_foreign
from shardforge.shards.regular import open_regular

_LONGEST_LABEL = 1024
_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("source", pa.string()),
        ("cut", pa.string()),
        ("crc32", pa.int64()),
        ("label", pa.string()),
        ("members", pa.list_(pa.struct([("name", pa.string()), ("offset", pa.int64()), ("size", pa.int64())]))),
        ("pictures", pa.list_(TYPE)),
    ]
)


@dataclass(frozen=True)
class Survey:
    """What is known about a tar as a whole.

    Attributes:
        path: the arrow file with one row for each sample.
        size, sha256: of the tar.
        damage: where and how it ends to make sense; empty for a whole one.
        skipped: kind of entry that is no member of a sample → how many.
    """

    path: Path
    size: int
    sha256: str
    damage: tuple[str, ...]
    skipped: dict[str, int]

    def rows(self) -> Iterator[dict[str, Any]]:
        """``key``, ``source`` (name of the first member), ``cut``, ``crc32``, ``label`` (JSON, or null), ``members``
        and ``pictures``, of every sample in the order of the tar."""
        with pa.memory_map(str(self.path)) as file:
            yield from pa.ipc.open_file(file).read_all().to_pylist()


def survey(tar: Path, target: Path, label: str | None, limits: Limits, over: threading.Event) -> Survey:
    """Reads a tar from front to back.

    Args:
        target: the arrow file to write.
        label: ``cls``, ``json:NAME``, or None: where a sample's label is.
        over: set when nobody wants the result any more.

    Raises:
        OSError: the tar cannot be read, or the file not be written.
        CancelledError: ``over`` was set.
    """
    field, _, entry = (label or "").partition(":")
    labels: dict[str, str | None] = {}
    pictures: dict[str, list[dict[str, Any]]] = {}

    def look(sample: ForeignSample, name: str, payload: bytes) -> None:
        if name == field:
            labels[sample.key] = _label(payload, entry)
        else:
            pictures.setdefault(sample.key, []).append(picture_facts(name, payload, limits).row())

    def wanted(name: str) -> bool:
        if over.is_set():
            raise CancelledError
        return name == field or name.rpartition(".")[2] in FORMS

    with open_regular(tar) as file:
        found = scan_foreign(file, prefix="", wanted=wanted, look=look)
    rows = [
        {
            "key": sample.key,
            "source": sample.source,
            "cut": sample.cut,
            "crc32": sample.crc32,
            "label": labels.get(sample.key),
            "members": [{"name": n, "offset": e.offset, "size": e.size} for n, e in sample.extents.items()],
            "pictures": pictures.get(sample.key, []),
        }
        for sample in found.samples
    ]
    damage = tuple(f"byte {damage.offset:,}: {damage.what}" for damage in found.damage)
    told = {"size": found.size, "sha256": found.sha256, "damage": damage, "skipped": dict(found.skipped)}
    content = pa.Table.from_pylist(rows, _SCHEMA).replace_schema_metadata({"survey": json.dumps(told)})
    unfinished = target.with_suffix(".part")
    with pa.OSFile(str(unfinished), "wb") as out, pa.ipc.new_file(out, content.schema) as writer:
        writer.write_table(content)
    unfinished.replace(target)
    return read_survey(target)


def read_survey(path: Path) -> Survey:
    """A survey that was made before.

    Raises:
        OSError, pa.ArrowException, ValueError, KeyError: it is not there, or none.
    """
    with pa.memory_map(str(path)) as file:
        told = json.loads((pa.ipc.open_file(file).schema.metadata or {})[b"survey"])
    return Survey(path, told["size"], told["sha256"], tuple(told["damage"]), told["skipped"])


def _label(payload: bytes, entry: str) -> str | None:
    """The label as JSON; null for what is none."""
    try:
        if not entry:
            return json.dumps(payload[:_LONGEST_LABEL].decode("utf-8-sig").strip(string.whitespace))
        content = json.loads(payload)
        return json.dumps(content.get(entry)) if isinstance(content, dict) else "null"
    except (ValueError, RecursionError):
        return "null"
