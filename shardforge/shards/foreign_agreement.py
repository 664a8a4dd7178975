"""Whether a tar made elsewhere still holds what its rows promise."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shardforge.shards.class_text import class_id
from shardforge.shards.foreign_scan import ForeignSample, ForeignScan
from shardforge.shards.rows import Note, PromisedSample


def compare_foreign(
    scan: ForeignScan,
    promised: Sequence[PromisedSample],
    *,
    keys: Collection[str],
    fields: Collection[str],
    class_field: str | None,
    note: Note,
    note_row: Note,
) -> None:
    """Notes at most one difference for each sample, in the order of the rows.

    Args:
        keys: of all rows, also of those that are no samples.
        fields: of the dataset; a tar may have others.
        note: takes what is wrong with the tar by itself.
        note_row: takes what is in the tar but not as its row says.
    """
    for damage in scan.damage:
        note(f"byte {damage.offset:,}: {damage.what}", None)
    found = {sample.key: sample for sample in scan.samples}
    for sample in promised:
        there = found.get(sample.key)
        problem = "is missing from the tar" if there is None else _problem(there, sample, fields, class_field)
        if problem is not None:
            note_row(problem, sample.key)
    told = set(keys)
    for key in found:
        if key not in told:
            note_row("is in the tar, but no row tells of it", key)


def _problem(
    there: ForeignSample, sample: PromisedSample, fields: Collection[str], class_field: str | None
) -> str | None:
    for name in sorted(fields):
        real, said = there.extents.get(name), sample.extents.get(name)
        if real != said:
            if real is None or said is None:
                return f"its {name} is {'missing from the tar' if real is None else 'in the tar, unknown to the row'}"
            return f"its {name} is {real.size:,} bytes at {real.offset:,}, not {said.size:,} at {said.offset:,}"
    if there.sha256 != sample.sha256:
        return "the sha256 of its main payload is not that of the row: its bytes were changed"
    if there.crc32 != sample.crc32:
        return "the crc32 of its payloads is not that of the row: they were changed"
    if class_field is not None and class_id(there.class_text or b"") != sample.label:
        return f"its {class_field} holds {there.class_text!r} where the label is {sample.label}"
    return None
