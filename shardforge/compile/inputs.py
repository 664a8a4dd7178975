"""What a dataset is made from, and whether it is still the same when a build is run again."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shardforge.sources.item import Item

_EXAMPLES = 3


@dataclass(frozen=True)
class InputDigests:
    """Digests over all items in order.

    Attributes:
        content: names, sizes, labels, groups, columns: everything a plan depends on.
        times: modification times; they tell whether a closer look is needed, and are no part of any identity. Keyed
            where names are hidden: times of files are few enough to be tried out.
    """

    content: str
    times: str


def digest_inputs(items: Iterable[Item], conceal: Callable[[str], str] | None = None) -> InputDigests:
    """Digests of the items, which are sorted already.

    Args:
        conceal: what stands for names of files and groups, and for their times, where nobody shall be able to try
            them out.
    """
    content, times = hashlib.sha256(), hashlib.sha256()
    hide = conceal or str
    for item in items:
        files = sorted(item.files.items())
        described = [
            item.shown,
            item.frame,
            item.frames,
            [[field, hide(file.path), file.size] for field, file in files],
            item.label,
            None if item.group is None else hide(item.group),
            item.split,
            item.key,
            item.caption,
            item.columns,
            item.problem,
        ]
        content.update(json.dumps(described, default=str, sort_keys=True).encode())
        times.update(b"".join(file.mtime_ns.to_bytes(12, "big", signed=True) for _, file in files))
    return InputDigests(content.hexdigest(), hide(times.hexdigest()))


def sidecar_digest(digests: Mapping[str, str]) -> str | None:
    """One digest for an item's sidecars (field → sha256 in hex), or None when it has none."""
    if not digests:
        return None
    lines = "".join(f"{field} {digest}\n" for field, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def hash_file(path: Path) -> str | None:
    """The sha256 of a file in hex, or None when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def contents_differ(
    digest: Callable[[str], str | None], recorded: Iterable[Mapping[str, Any]], items: Mapping[str, Item]
) -> Iterator[str]:
    """Sources whose bytes are no longer what was compiled; for when only modification times differ.

    Args:
        digest: of the file at a path, as rows have it; None when it cannot be read.
        recorded: rows with ``source``, ``source_sha256`` and ``sidecar_sha256`` of what has been compiled; files
            that could not be read then have no digest and are passed over.
        items: source → item now.
    """
    checked = set()
    for row in recorded:
        seen = (row["source"], row["source_sha256"], row["sidecar_sha256"])
        # The frames of one file share its bytes.
        if row["source_sha256"] is None or seen in checked:
            continue
        checked.add(seen)
        item = items[row["source"]]
        paths = {field: file.path for field, file in item.files.items()}
        main = paths.pop("image", None)
        found = None if main is None else digest(main)
        sidecars = sidecar_digest({field: digest(path) or "" for field, path in paths.items()})
        if (found, sidecars) != (row["source_sha256"], row["sidecar_sha256"]):
            yield row["source"]


def explain_difference(old: pa.Table, items: Sequence[Item]) -> str:
    """What changed between the items of an earlier plan and now, in a few words.

    Args:
        old: rows with ``source``, ``source_bytes`` and ``label_name``, nulls where unknown.
    """
    before = {row["source"]: row for row in old.to_pylist()}
    now = {item.shown: item for item in items}
    parts = [
        _count("added", [source for source in now if source not in before]),
        _count("removed", [source for source in before if source not in now]),
        _count("changed in size", [source for source, item in now.items() if _resized(before.get(source), item)]),
        _count("with another number of frames", _reframed(old, items)),
    ]
    told = ", ".join(part for part in parts if part)
    return told or "labels, groups, sidecar files, table columns or identical files differ"


def _reframed(old: pa.Table, items: Sequence[Item]) -> list[str]:
    """Sources that had and have items, but not as many."""
    before, now = Counter(old["source"].to_pylist()), Counter(item.shown for item in items)
    return [source for source, count in now.items() if before[source] not in (0, count)]


def _resized(row: Mapping[str, Any] | None, item: Item) -> bool:
    main = item.files.get("image")
    return bool(row and row["source_bytes"] is not None and main is not None and row["source_bytes"] != main.size)


def _count(what: str, sources: Sequence[str]) -> str:
    if not sources:
        return ""
    shown = ", ".join(sources[:_EXAMPLES]) + (", …" if len(sources) > _EXAMPLES else "")
    return f"{len(sources)} {what} ({shown})"
