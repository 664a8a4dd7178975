"""Finds identical stored pictures in different splits, once all shards are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shardforge.shards import metadata
from shardforge.shards.layout import parquet_path

_TOLD = 3
Hashes = npt.NDArray[np.uint64]


def warn_of_repeated_pixels(out: Path, shards: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A warning if pictures with the same pixels lie in more than one split, else nothing.

    Memory holds eight bytes for each sample, twice while they are sorted.

    Args:
        shards: split → names of its shards.

    Raises:
        DamagedError: a parquet file cannot be read.
    """
    if len(shards) < 2:
        return ()
    distinct = [np.unique(np.concatenate([_hashes(out, name) for name in names])) for names in shards.values()]
    everything = np.sort(np.concatenate(distinct))
    repeated = np.unique(everything[1:][everything[1:] == everything[:-1]])
    if not len(repeated):
        return ()
    shown = "; ".join(" = ".join(places) for places in _places(out, shards, repeated[:_TOLD]).values())
    more = f", and {len(repeated) - _TOLD:,} more" if len(repeated) > _TOLD else ""
    what = "picture lies" if len(repeated) == 1 else "pictures lie"
    return (f"{len(repeated):,} {what} in more than one split, equal in every stored pixel: {shown}{more}",)


def _column(out: Path, shard: str, columns: Sequence[str]) -> pa.Table:
    return metadata.read(parquet_path(out, shard), columns)


def _hashes(out: Path, shard: str) -> Hashes:
    column = _column(out, shard, ["pixels_hash"])["pixels_hash"].drop_null().to_pylist()
    return np.fromiter((int(digits, 16) for digits in column), np.uint64, len(column))


def _places(out: Path, shards: Mapping[str, Sequence[str]], wanted: Hashes) -> dict[str, list[str]]:
    """Hash → one source in each split that has it; reads on only until all are found."""
    found: dict[str, list[str]] = {f"{value:016x}": [] for value in wanted.tolist()}
    for split, names in shards.items():
        missing = set(found)
        for digits, source in _sources(out, names):
            if digits in missing:
                missing.discard(digits)
                found[digits].append(f"{source} ({split})")
            if not missing:
                break
    return found


def _sources(out: Path, shards: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in shards:
        table = _column(out, name, ["pixels_hash", "source"])
        yield from zip(table["pixels_hash"].to_pylist(), table["source"].to_pylist(), strict=True)
