"""Whether a shard's tar holds what its rows promise, and an index what the rows say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import pyarrow as pa

from shardforge.shards.index import SplitIndex, rows
from shardforge.shards.rows import Note, PromisedSample
from shardforge.shards.scan import Scan, ScannedSample


def compare_tar(
    scan: Scan, promised: Sequence[PromisedSample], *, class_field: str | None, note: Note, note_row: Note
) -> None:
    """Notes at most one difference for each sample, in the order of the tar.

    Args:
        promised: in the order of the rows, which is the order of the tar.
        note: takes what is wrong with the tar by itself.
        note_row: takes what is in the tar but not as its row says.
    """
    starts = [sample.start for sample in promised]
    problems: list[tuple[int, str | None, str, Note]] = []
    blamed = set()
    for damage in scan.damage:
        number = bisect_right(starts, damage.offset) - 1
        key = promised[number].key if number >= 0 and damage.offset < promised[number].end else None
        if key is None or key not in blamed:
            problems.append((damage.offset, key, f"byte {damage.offset:,}: {damage.what}", note))
        blamed.add(key)

    found = {sample.key: sample for sample in reversed(scan.samples)}
    for sample in promised:
        there = found.pop(sample.key, None)
        problem = "is missing from the tar" if there is None else _sample_problem(there, sample, class_field)
        if problem is not None and sample.key not in blamed:
            problems.append((sample.start, sample.key, problem, note_row))
    for key, extra in found.items():
        problems.append((extra.start, key, "is in the tar, but no sound row tells of it", note_row))
    for _, key, problem, take in sorted(problems, key=lambda entry: entry[0]):
        take(problem, key)


def _sample_problem(there: ScannedSample, sample: PromisedSample, class_field: str | None) -> str | None:
    for name in sorted(there.extents.keys() | sample.extents.keys()):
        real, said = there.extents.get(name), sample.extents.get(name)
        if real is None:
            return f"its {name} is missing from the tar"
        if said is None:
            return f"its {name} is in the tar, but the row does not tell of it"
        if real != said:
            return f"its {name} is {real.size:,} bytes at {real.offset:,}, not {said.size:,} at {said.offset:,}"
    if there.sha256 != sample.sha256:
        return "the sha256 of its main payload is not that of the row: its bytes were changed"
    if there.crc32 != sample.crc32:
        return "the crc32 of its bytes is not that of the row: they were changed"
    if class_field is not None and there.class_text != str(sample.label).encode():
        return f"its {class_field} holds {there.class_text!r} where the label is {sample.label}"
    return None


def compare_index(
    found: SplitIndex, first: int, shard: int, parquet: pa.Table, schema: pa.Schema, note: Note
) -> None:
    """Notes the first index row that is not what the shard's parquet rows say.

    Args:
        first: number of the shard's first sample within the split.
        shard: number of the shard within the split.
        parquet: all of the shard's rows.
        schema: of the index.

    Raises:
        Exception: of several kinds, if the content is no sound arrow data.
    """
    right = rows(shard, parquet, schema)
    for name in schema.names:
        real = found.column(name).slice(first, right.num_rows)
        if real.equals(right.column(name)):
            continue
        # By their text, so that a NaN agrees with a NaN.
        pairs = zip(map(repr, real.to_pylist()), map(repr, right.column(name).to_pylist()), strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if place is not None:
            key = right.column("key")[place].as_py()
            there, belongs = real[place].as_py(), right.column(name)[place].as_py()
            note(f"{name} is {there!r} where the parquet says {belongs!r}", key)
            return
